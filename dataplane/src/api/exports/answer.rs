//! Exports as callers read them, and the links to their files.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use rowgate_core::export_link::ExportLink;
use rowgate_core::name::Ulid;
use rowgate_core::problem::Problem;
use rowgate_pg::control::exports::Job;
use serde::Serialize;

use crate::api::rest::target::RequestTarget;
use crate::export_jobs::{Exports, LINK_LIFE};
use crate::server::compress::Uncompressed;

/// A job. What is not known is left out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown<'a> {
    id: &'a str,
    file: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_position: Option<i64>,
    rows: i64,
    bytes: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url_expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_cursor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capped: Option<bool>,
    created_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JobError<'a>>,
}

#[derive(Serialize)]
struct JobError<'a> {
    code: &'a str,
    message: &'a str,
}

/// A URL, and when it expires.
pub(super) struct Link {
    url: String,
    expires_at: String,
}

/// What links are made of.
pub(super) struct Links<'a> {
    pub(super) exports: &'a Exports,
    pub(super) tenant: &'a Ulid,
    pub(super) key: &'a Ulid,
    pub(super) target: &'a RequestTarget,
}

impl<'a> Shown<'a> {
    pub(super) fn of(job: &'a Job, link: Option<Link>) -> Shown<'a> {
        let (url, url_expires_at) = link.map(|link| (link.url, link.expires_at)).unzip();
        let has_succeeded = job.status == "succeeded";
        let error = job.error_code.as_deref().zip(job.error_message.as_deref());
        Shown {
            id: &job.id,
            file: &job.name,
            status: &job.status,
            queue_position: job.queue_position,
            rows: job.rows,
            bytes: job.bytes,
            progress: progress(job),
            url,
            url_expires_at,
            expires_at: job.expires_at.as_deref(),
            event_cursor: job.event_cursor.as_deref(),
            capped: has_succeeded.then_some(job.capped),
            created_at: &job.created_at,
            started_at: job.started_at.as_deref(),
            finished_at: job.finished_at.as_deref(),
            error: error.map(|(code, message)| JobError { code, message }),
        }
    }
}

/// From 0 to 1; `None`: how many rows there will be is not known.
fn progress(job: &Job) -> Option<f64> {
    match job.status.as_str() {
        "succeeded" => Some(1.0),
        "queued" => Some(0.0),
        "running" => {
            let estimate = job.estimate.filter(|estimate| 0 < *estimate)?;
            let part = job.rows as f64 / estimate as f64;
            // it is done when it says so
            Some((part.clamp(0.0, 0.99) * 1000.0).round() / 1000.0)
        }
        _ => None,
    }
}

impl Links<'_> {
    /// A new link to the file of the job, where it has one.
    pub(super) fn link(&self, job: &Job) -> Result<Option<Link>, Problem> {
        let (Ok(export), Ok(fence)) = (job.id.parse::<Ulid>(), u32::try_from(job.fence)) else {
            return Ok(None);
        };
        if job.status != "succeeded" {
            return Ok(None);
        }
        // Time enters here.
        let now = jiff::Timestamp::now().as_second();
        let expires = (now + LINK_LIFE).min(job.expires.unwrap_or(i64::MAX));
        let (tenant, key) = (self.tenant.clone(), self.key.clone());
        let token = self.exports.link_key.sign(&ExportLink { tenant, key, export, fence, expires });
        let expires_at = jiff::Timestamp::from_second(expires).map_err(|_| Problem::internal())?.to_string();
        let url = format!("{}{}/{}/file?token={token}", self.target.origin()?, super::BASE, job.id);
        Ok(Some(Link { url, expires_at }))
    }
}

/// Links are secrets: what holds one is not compressed.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("names and numbers are JSON");
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.extensions_mut().insert(Uncompressed);
    response
}
