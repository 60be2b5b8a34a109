//! Downloads the file of a job. A connection that breaks is made again, and asks for the bytes that are missing.

use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, LOCATION};
use hyper::{Response, StatusCode};
use rowgate_core::backoff;

use super::job::Job;
use super::part::Part;
use super::progress::Progress;
use crate::commands::exports;
use crate::failure::Failure;
use crate::http::client::{Api, piece, refusal};
use crate::http::request::Request;

const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(15);

/// What to do with an answer to a request for the bytes behind those that are here.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// The body goes on where the part ends; the size of the whole file, if it is said.
    Append(Option<u64>),
    /// The body is the whole file.
    Begin(Option<u64>),
    /// Everything is here.
    Complete,
    /// What is here is not of this file: drop it, and ask for the whole.
    StartOver,
    /// The address is no longer valid, or never was: the job gives another.
    Renew,
    /// The server is unavailable for now.
    Later,
}

fn step(status: StatusCode, headers: &HeaderMap, have: u64) -> Step {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let range = header(CONTENT_RANGE).and_then(content_range);
    match (status, range) {
        (StatusCode::PARTIAL_CONTENT, Some((Some(start), total))) if start == have => Step::Append(total),
        (StatusCode::RANGE_NOT_SATISFIABLE, Some((None, Some(total)))) if total == have => Step::Complete,
        (StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE, _) => Step::StartOver,
        (StatusCode::OK, _) => Step::Begin(header(CONTENT_LENGTH).and_then(|text| text.parse().ok())),
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT, _) => Step::Later,
        (status, _) if status.is_server_error() => Step::Later,
        _ => Step::Renew,
    }
}

/// `bytes 5-9/10`, `bytes 5-9/*` or `bytes */10`: the first byte, and the size of the whole.
fn content_range(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let start = range.split_once('-').and_then(|(start, _)| start.trim().parse().ok());
    Some((start, total.trim().parse().ok()))
}

/// Downloads into `part`, behind what it has.
pub(super) async fn run(api: &Api, job: &Job, part: &mut Part, progress: &Progress) -> Result<(), Failure> {
    let mut url = address(job)?;
    let (mut n_failed, mut etag) = (0, None);
    loop {
        let before = part.len();
        let done = once(api, &url, part, &mut etag, progress).await;
        let failure = match done {
            Ok(None) => return Ok(()),
            Ok(Some(failure)) => failure,
            Err(failure) => return Err(failure),
        };
        // what was too much is a new beginning, and bytes that came are a success
        n_failed = if before < part.len() { 1 } else { n_failed + 1 };
        if api.retries() < n_failed {
            return Err(failure);
        }
        tokio::time::sleep(backoff::nth(INITIAL_BACKOFF, MAX_BACKOFF, n_failed - 1)).await;
        url = address(&Job::of(api.json(&Request::get(exports::path(&job.id))).await?.value)?)?;
    }
}

fn address(job: &Job) -> Result<String, Failure> {
    job.url.clone().ok_or_else(|| {
        Failure::refused(format!("the export {} has no file any more; start it again", job.id))
    })
}

/// One connection. `None`: the file is complete; a failure in `Ok` is worth another try.
async fn once(
    api: &Api,
    url: &str,
    part: &mut Part,
    etag: &mut Option<String>,
    progress: &Progress,
) -> Result<Option<Failure>, Failure> {
    let (response, is_ours) = match asked(api, url, part.len(), etag.as_deref()).await {
        Ok(answer) => answer,
        Err(failure @ Failure::Unavailable(_)) => return Ok(Some(failure)),
        Err(failure) => return Err(failure),
    };
    if is_ours && response.status() == StatusCode::UNAUTHORIZED {
        return Err(refusal(response).await);
    }
    let total = match step(response.status(), response.headers(), part.len()) {
        Step::Complete => return Ok(None),
        Step::Append(total) => total,
        Step::Begin(total) => {
            part.clear()?;
            total
        }
        Step::StartOver => {
            part.clear()?;
            *etag = None;
            return Ok(Some(Failure::Unavailable(
                "the server sent other bytes than were asked for".to_owned(),
            )));
        }
        Step::Renew | Step::Later => return Ok(Some(refusal(response).await)),
    };
    *etag = strong_etag(&response);
    progress.download(part.len(), total);
    let mut body = response.into_body();
    loop {
        match piece(&mut body).await {
            Ok(Some(bytes)) => part.append(&bytes)?,
            Ok(None) if total.is_none_or(|total| total == part.len()) => return Ok(None),
            Ok(None) => return Ok(Some(Failure::Unavailable("the download ended too early".to_owned()))),
            Err(failure) => return Ok(Some(failure)),
        }
        progress.at(part.len());
    }
}

/// The answer, and whether it is the server's: where that keeps files in object storage, it sends us there, without the key.
async fn asked(
    api: &Api,
    url: &str,
    have: u64,
    etag: Option<&str>,
) -> Result<(Response<Incoming>, bool), Failure> {
    let target = api.base().link(url).map_err(Failure::refused)?;
    let is_ours = target.is_ours;
    let response = api.raw(&request(Request::follow(target), have, etag)).await?;
    let to = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
    let Some(to) = to.and_then(|to| to.to_str().ok()) else { return Ok((response, is_ours)) };
    let target = api.base().link(to).map_err(Failure::refused)?;
    let is_ours = target.is_ours;
    Ok((api.raw(&request(Request::follow(target), have, etag)).await?, is_ours))
}

/// For the bytes behind the first `have`, if the file is still the one with this tag.
fn request(request: Request, have: u64, etag: Option<&str>) -> Request {
    let request = request.header("accept", "*/*".to_owned());
    match (have, etag) {
        (0, _) => request,
        (have, None) => request.header("range", format!("bytes={have}-")),
        (have, Some(etag)) => {
            request.header("range", format!("bytes={have}-")).header("if-range", etag.to_owned())
        }
    }
}

/// Weak tags do not promise the same bytes.
fn strong_etag<T>(response: &Response<T>) -> Option<String> {
    let etag = response.headers().get(ETAG)?.to_str().ok()?;
    (!etag.starts_with("W/")).then(|| etag.to_owned())
}

#[cfg(test)]
mod tests;
