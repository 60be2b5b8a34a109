//! The end of a request, logged and counted once: when its answer is over or broke off, or when its caller went away before it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use rowgate_core::problem::Code;

use crate::app::App;
use crate::server::trace::{RequestEnd, Trace};

/// What a caller's going away before the answer is counted and logged as. It is never sent.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Logs and counts the request when it is dropped.
pub struct AccessLogEntry {
    pub trace: Arc<Trace>,
    app: Arc<App>,
    method: Method,
    began: Instant,
    /// The status, and why it was refused, once there is an answer.
    answered: Option<(StatusCode, Option<Code>)>,
    /// Of the body, as far as the connection took it.
    bytes: u64,
    /// The connection has taken all that there is.
    is_whole: bool,
    is_endless: bool,
}

/// Marks an answer that goes on until its reader has enough: where the reader leaves, it is whole.
#[derive(Clone)]
pub struct Endless;

/// A body of unknown length, and the entry to write at its end.
struct LoggedBody {
    body: Body,
    entry: AccessLogEntry,
}

impl AccessLogEntry {
    pub fn new(app: Arc<App>, trace: Arc<Trace>, method: Method, began: Instant) -> AccessLogEntry {
        AccessLogEntry {
            trace,
            app,
            method,
            began,
            answered: None,
            bytes: 0,
            is_whole: false,
            is_endless: false,
        }
    }

    /// Ends here where the length of the answer is known, because then all of it is at hand, and with the body where not.
    pub fn follow(mut self, response: Response, refused: Option<Code>) -> Response {
        self.answered = Some((response.status(), refused));
        self.is_endless = response.extensions().get::<Endless>().is_some();
        let size = match self.method == Method::HEAD {
            // The connection drops its body, whatever it is.
            true => Some(0),
            false => response.body().size_hint().exact(),
        };
        if let Some(size) = size {
            (self.bytes, self.is_whole) = (size, true);
            return response;
        }
        response.map(|body| Body::new(LoggedBody { body, entry: self }))
    }
}

impl Drop for AccessLogEntry {
    fn drop(&mut self) {
        let gone = || (StatusCode::from_u16(CLIENT_CLOSED_REQUEST).expect("three digits"), None);
        let (status, refused) = self.answered.unwrap_or_else(gone);
        let AccessLogEntry { ref method, bytes, is_whole, .. } = *self;
        let is_whole = is_whole || self.is_endless;
        let took = self.began.elapsed();
        self.trace.end(&self.app.metrics, &RequestEnd { method, status, refused, took, bytes, is_whole });
    }
}

impl HttpBody for LoggedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let next = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &next {
            Some(Ok(frame)) => {
                self.entry.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                // It is not asked again after its last frame.
                self.entry.is_whole = self.body.is_end_stream();
            }
            Some(Err(_)) => {}
            None => self.entry.is_whole = true,
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
