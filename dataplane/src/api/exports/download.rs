//! The file of an export, for whoever has a link that was signed here and has not expired. Every link that is not good gets one answer.

use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, ETAG,
    LOCATION,
};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, stream};
use hyper::body::{Frame, SizeHint};
use rowgate_core::problem::{Code, Problem};
use rowgate_core::secret::Credential;
use rowgate_pg::control::exports as jobs;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use super::range::Part;
use crate::app::App;
use crate::export_jobs::storage::folder::is_removed;
use crate::export_jobs::storage::{Storage, disposition, media_type};
use crate::server::compress::Uncompressed;
use crate::server::path;
use crate::server::respond::{MediaType, Refusal};
use crate::server::trace::Trace;

/// Read at a time.
const CHUNK: usize = 128 << 10;

/// `GET /api/ddl/exports/{id}/file?token=`
pub(crate) async fn file(State(app): State<Arc<App>>, parts: Parts) -> Result<Response, Refusal> {
    let trace = Trace::of(&parts);
    let exports = app.exports.as_ref().ok_or_else(bad_link)?;
    let id = path::decode(parts.uri.path().split('/').nth(4).unwrap_or_default()).map_err(|_| bad_link())?;
    let token = parts.uri.query().and_then(|query| query.strip_prefix("token=")).ok_or_else(bad_link)?;
    // Time enters here.
    let now = jiff::Timestamp::now().as_second();
    let link = exports.link_key.verify(&id, token, now).ok_or_else(bad_link)?;
    let tenant = app.tenants.by_id(link.tenant.as_str()).ok_or_else(bad_link)?;
    let _first = trace.tenant.set(tenant.clone());
    // a link is worth no more than the key that it was given to
    let context = match tenant.authenticate_fresh(&Credential::Owner(link.key.clone())).await {
        Err(problem) if problem.code == Code::Unauthorized => return Err(bad_link().into()),
        found => found?,
    };
    let _first = trace.key.set(context.key.clone());
    let fence = i32::try_from(link.fence).map_err(|_| bad_link())?;
    let (of, export) = (link.clone(), link.export.clone());
    let name = exports.ask(move |conn| {
        Box::pin(async move { jobs::file(conn, &of.tenant, &of.key, &of.export, fence).await })
    });
    let name = name.await?.ok_or_else(bad_link)?;
    let fault = |error: String| {
        trace.fault("the file of an export cannot be read", &error);
        Problem::internal()
    };
    match &exports.storage {
        Storage::Folder(folder) => {
            let found = folder.read(export.as_str(), fence).map_err(|error| fault(error.to_string()))?;
            let (file, len) = found.ok_or_else(bad_link)?;
            let etag = format!("\"{export}.{fence}\"");
            let answer = answer(&parts, (File::from_std(file), len), &etag, &name).await;
            Ok(answer.map_err(|error| fault(error.to_string()))?)
        }
        Storage::Objects(objects) => {
            let life = Duration::from_secs(u64::try_from(link.expires - now).unwrap_or_default());
            let method = if parts.method == Method::HEAD { Method::HEAD } else { Method::GET };
            let url = objects.link(export.as_str(), fence, method, life).await;
            Ok(redirect(&url.map_err(|error| fault(error.to_string()))?)?)
        }
    }
}

/// To the storage, by a link of its own that expires with ours.
fn redirect(url: &str) -> Result<Response, Problem> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let location = HeaderValue::try_from(url).map_err(|_| Problem::internal())?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// One answer for a link that is forged, altered or of another export, has expired, or leads to a file or a key that is gone.
fn bad_link() -> Problem {
    let what =
        "this link to an export is not valid, or has expired; GET the export with its API key for a new one";
    Problem::new(Code::NotFound, what)
}

async fn answer(parts: &Parts, (mut file, len): (File, u64), etag: &str, name: &str) -> io::Result<Response> {
    let part = match parts.method {
        Method::GET => Part::of(&parts.headers, len, etag),
        _ => Part::Whole,
    };
    let (status, start, n_bytes) = match part {
        Part::Whole => (StatusCode::OK, 0, len),
        Part::Range { start, len } => (StatusCode::PARTIAL_CONTENT, start, len),
        Part::Beyond => (StatusCode::RANGE_NOT_SATISFIABLE, 0, 0),
    };
    if 0 < start {
        file.seek(SeekFrom::Start(start)).await?;
    }
    let (chunks, sent) = (Box::pin(chunks(file, n_bytes)), 0);
    let mut response = Response::new(Body::new(FileBody { chunks, len: n_bytes, sent }));
    *response.status_mut() = status;
    let text = |text: String| HeaderValue::try_from(text).map_err(io::Error::other);
    let headers = response.headers_mut();
    match part {
        Part::Whole => {}
        Part::Range { start, len: n_bytes } => {
            let last = start + n_bytes - 1;
            headers.insert(CONTENT_RANGE, text(format!("bytes {start}-{last}/{len}"))?);
        }
        Part::Beyond => {
            headers.insert(CONTENT_RANGE, text(format!("bytes */{len}"))?);
        }
    }
    headers.insert(CONTENT_LENGTH, n_bytes.into());
    headers.insert(ETAG, text(etag.to_owned())?);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_DISPOSITION, text(disposition(name))?);
    // a browser shows nothing of it, whatever it holds
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    response.extensions_mut().insert(MediaType(HeaderValue::from_static(media_type(name))));
    response.extensions_mut().insert(Uncompressed);
    Ok(response)
}

/// Bytes whose number is known.
struct FileBody<S> {
    chunks: Pin<Box<S>>,
    len: u64,
    sent: u64,
}

impl<S: Stream<Item = io::Result<Bytes>>> hyper::body::Body for FileBody<S> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let next = ready!(self.chunks.as_mut().poll_next(cx));
        if let Some(Ok(chunk)) = &next {
            self.sent += chunk.len() as u64;
        }
        Poll::Ready(next.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.sent == self.len
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len - self.sent)
    }
}

/// The next bytes of the file. A file that is removed ends there: its key has died, or its export was deleted.
fn chunks(file: File, n_bytes: u64) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold((file, n_bytes), async |(mut file, rest)| {
        if rest == 0 {
            return Ok(None);
        }
        let file_now = file.try_clone().await?.into_std().await;
        if is_removed(&file_now)? {
            return Err(io::Error::other("the file was removed"));
        }
        let wanted = rest.min(CHUNK as u64);
        let mut chunk = vec![0; usize::try_from(wanted).expect("at most a chunk")];
        let n_read = file.read(&mut chunk).await?;
        if n_read == 0 {
            return Err(io::Error::other("the file ends too early"));
        }
        chunk.truncate(n_read);
        Ok(Some((Bytes::from(chunk), (file, rest - n_read as u64))))
    })
}
