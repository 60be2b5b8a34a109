//! `{"columns":[...],"value":[...],"truncated":false}`: rows as JSON, whole or as PostgreSQL gives them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use rowgate_pg::wire::KeyPermit;
use serde_json::json;

use crate::api::rest::rows::Chunks;
use crate::execute::remaining_rows::CutShort;
use crate::execute::sql::{RemainingSql, SqlAnswer, SqlPart};

/// The rows of a SELECT.
pub(super) fn rows(answer: SqlAnswer) -> Response {
    let column =
        |column: &crate::execute::sql::SqlColumn| json!({"name": column.name, "type": column.ty.name});
    let columns = serde_json::Value::from_iter(answer.columns.iter().map(column));
    let begin = Bytes::from(format!("{{\"columns\":{columns},\"value\":["));
    match answer.rest {
        Err(rest) => {
            let chunks = chunks([begin, Bytes::from(answer.json), end(rest.truncated)]);
            Response::new(Body::new(KeptSql { chunks, _permit: rest.permit }))
        }
        Ok(rest) => {
            let chunks = VecDeque::from([begin, Bytes::from(answer.json)]);
            Response::new(Body::new(StreamedSql { chunks, rest: Some(rest), permit: None }))
        }
    }
}

/// How PostgreSQL would run a SELECT: the one column of the one row.
pub(super) fn plan(answer: &SqlAnswer) -> Response {
    let row: serde_json::Value = serde_json::from_slice(&answer.json).unwrap_or_default();
    let plan = row.as_object().and_then(|row| row.values().next()).cloned().unwrap_or_default();
    Response::new(Body::from(json!({ "plan": plan }).to_string()))
}

fn chunks(chunks: [Bytes; 3]) -> Chunks {
    Chunks(chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect())
}

/// The body of an answer that is complete. It goes when the last byte is on its way.
struct KeptSql {
    chunks: Chunks,
    _permit: Option<KeyPermit>,
}

impl hyper::body::Body for KeptSql {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.chunks).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.chunks.size_hint()
    }
}

/// What follows on the rows.
fn end(truncated: bool) -> Bytes {
    Bytes::from_static(if truncated { b"],\"truncated\":true}" } else { b"],\"truncated\":false}" })
}

/// The body of a long answer. An error after its beginning can only break it off: the client sees that the body has no end, and the
/// log says why.
struct StreamedSql {
    chunks: VecDeque<Bytes>,
    rest: Option<RemainingSql>,
    permit: Option<KeyPermit>,
}

impl hyper::body::Body for StreamedSql {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        if let Some(chunk) = self.chunks.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        match ready!(rest.poll_next(cx)) {
            Ok(SqlPart::Json(json)) => return Poll::Ready(Some(Ok(Frame::data(Bytes::from(json))))),
            Ok(SqlPart::End { json, whole }) => {
                let last = [Bytes::from(json), end(whole.truncated)];
                self.chunks.extend(last.into_iter().filter(|it| !it.is_empty()));
                self.permit = whole.permit;
            }
            Err(cut_short) => {
                self.rest = None;
                return Poll::Ready(Some(Err(cut_short)));
            }
        }
        self.rest = None;
        Poll::Ready(self.chunks.pop_front().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty() && self.rest.is_none()
    }
}
