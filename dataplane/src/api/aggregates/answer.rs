//! `{"value":[...],"after":null}`: groups as JSON, whole or as PostgreSQL gives them, and the cursor of the next page.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;

use crate::api::rest::rows::{BEGIN, Chunks, StreamedRows};
use crate::execute::read::Answer;

/// The cursor stands in the answer as it is.
pub(super) fn response(answer: Answer) -> Response {
    let Answer { json, after, tail, .. } = answer;
    if let Some(tail) = tail {
        let rows = StreamedRows::new(json, tail, None, Box::new(str::to_owned)).ending(end);
        return Response::new(Body::new(rows));
    }
    let chunks = [Bytes::from_static(BEGIN), Bytes::from(json), end(None, after.as_deref())];
    Response::new(Body::new(Chunks(chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect())))
}

/// What follows on the groups. A cursor is base 64 and needs no escaping.
fn end(_: Option<i64>, after: Option<&str>) -> Bytes {
    match after {
        None => Bytes::from_static(b"],\"after\":null}"),
        Some(after) => Bytes::from(format!("],\"after\":\"{after}\"}}")),
    }
}
