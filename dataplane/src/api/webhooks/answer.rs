//! Subscriptions, deliveries and dead letters as callers read them.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use rowgate_pg::tenant::subscriptions::Subscription;
use rowgate_pg::tenant::subscriptions::past::{DeadLetter, Delivery};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::events::request::op_name;
use crate::server::compress::Uncompressed;

/// A subscription. It has no secret: that is shown once, beside it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown<'a> {
    id: &'a str,
    name: &'a str,
    origin: &'a str,
    url: &'a str,
    filter: Filter<'a>,
    payload_query: Option<&'a str>,
    batch: Batch,
    retry: Retry,
    headers: &'a RawValue,
    state: &'a str,
    reason: Option<&'a str>,
    suspend: bool,
    /// Why nothing is delivered, or that it is.
    delivering: &'static str,
    cursor: &'a str,
    consecutive_dead_letters: i32,
    dead_letters: i64,
    lag_events: i64,
    oldest_undelivered: Option<&'a str>,
    last_delivery: Option<&'a str>,
    last_error: Option<&'a str>,
    last_error_at: Option<&'a str>,
    created_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
}

#[derive(Serialize)]
struct Filter<'a> {
    tables: Option<&'a [String]>,
    ops: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Batch {
    max_events: i32,
    max_bytes: i32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Retry {
    max_attempts: i32,
    initial_delay: i32,
    max_delay: i32,
    disable_on_gone: bool,
}

impl<'a> Shown<'a> {
    /// `secret`: in the answer to the request that made it.
    pub(super) fn of(it: &'a Subscription, secret: Option<&'a str>) -> Shown<'a> {
        let spec = &it.spec;
        let delivering = match it {
            it if it.owner_inactive => "OwnerInactive",
            it if it.state == "disabled" => "Disabled",
            _ if spec.suspend => "Suspended",
            it if it.is_failing => "Failing",
            _ => "Delivering",
        };
        Shown {
            id: &it.id,
            name: &spec.name,
            origin: &it.origin,
            url: &spec.url,
            filter: Filter {
                tables: spec.tables.as_deref(),
                ops: spec.ops.iter().map(|op| op_name(op)).collect(),
            },
            payload_query: spec.payload_query.as_deref(),
            batch: Batch { max_events: spec.max_events, max_bytes: spec.max_bytes },
            retry: Retry {
                max_attempts: spec.max_attempts,
                initial_delay: spec.initial_seconds,
                max_delay: spec.max_seconds,
                disable_on_gone: spec.disable_on_gone,
            },
            headers: serde_json::from_str(&spec.headers).unwrap_or(RawValue::NULL),
            state: &it.state,
            reason: it.reason.as_deref(),
            suspend: spec.suspend,
            delivering,
            cursor: &it.cursor,
            consecutive_dead_letters: it.consecutive_dead_letters,
            dead_letters: it.dead_letters,
            lag_events: it.lag_events,
            oldest_undelivered: it.oldest_undelivered.as_deref(),
            last_delivery: it.last_delivery.as_deref(),
            last_error: it.last_error.as_deref(),
            last_error_at: it.last_error_at.as_deref(),
            created_at: &it.created_at,
            secret,
        }
    }
}

/// One request to a receiver.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownDelivery<'a> {
    id: String,
    batch: &'a str,
    attempt: i32,
    at: &'a str,
    duration_ms: i32,
    events: i32,
    bytes: i32,
    first_event: Option<&'a str>,
    last_event: Option<&'a str>,
    status: Option<i32>,
    error: Option<&'a str>,
    request: Option<&'a str>,
    response: Option<&'a str>,
}

impl<'a> ShownDelivery<'a> {
    pub(super) fn of(it: &'a Delivery) -> ShownDelivery<'a> {
        ShownDelivery {
            id: it.id.to_string(),
            batch: &it.batch,
            attempt: it.attempt,
            at: &it.at,
            duration_ms: it.took_ms,
            events: it.n_events,
            bytes: it.n_bytes,
            first_event: it.first_event.as_deref(),
            last_event: it.last_event.as_deref(),
            status: it.status,
            error: it.error.as_deref(),
            request: it.request.as_deref(),
            response: it.response.as_deref(),
        }
    }
}

/// A batch that was given up.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownDeadLetter<'a> {
    id: &'a str,
    at: &'a str,
    events: i32,
    attempts: i32,
    first_event: &'a str,
    last_event: &'a str,
    last_status: Option<i32>,
    last_error: Option<&'a str>,
    redrive_requested_at: Option<&'a str>,
    delivered_at: Option<&'a str>,
    /// Of one that is read alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Value>,
}

impl<'a> ShownDeadLetter<'a> {
    pub(super) fn of(it: &'a DeadLetter, changes: Option<Value>) -> ShownDeadLetter<'a> {
        ShownDeadLetter {
            id: &it.id,
            at: &it.at,
            events: it.n_events,
            attempts: it.attempts,
            first_event: &it.first_event,
            last_event: &it.last_event,
            last_status: it.last_status,
            last_error: it.last_error.as_deref(),
            redrive_requested_at: it.redrive_at.as_deref(),
            delivered_at: it.delivered_at.as_deref(),
            changes,
        }
    }
}

/// JSON for this caller alone. Secrets are not compressed beside what a stranger may choose.
pub(super) fn json(status: StatusCode, answer: &impl Serialize) -> Response {
    let body = serde_json::to_vec(answer).expect("texts and numbers are JSON");
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    response
}

/// As [`json`], with a secret in it.
pub(super) fn secret_json(status: StatusCode, answer: &impl Serialize) -> Response {
    let mut response = json(status, answer);
    response.extensions_mut().insert(Uncompressed);
    response
}
