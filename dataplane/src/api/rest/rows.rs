//! `{"value":[...]}`: rows as JSON, whole or as PostgreSQL gives them, and the address of the next page.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::execute::remaining_rows::{CutShort, RemainingRows, RowPart};

/// Makes the address of the next page of a cursor.
pub type Link = Box<dyn FnOnce(&str) -> String + Send>;

/// `{"value":[...]}` with rows that are JSON already, and where the next page is.
pub struct Rows {
    /// Objects joined by commas, as the wire client wrote them.
    pub json: Vec<u8>,
    /// An absolute URL that needs no escaping, as `next_link` makes it.
    pub next_link: Option<String>,
    /// How many rows there are in all, where that was asked.
    pub count: Option<i64>,
    /// What follows on `json`, and how its end makes the next page's address. `None`: `json` is all.
    pub tail: Option<(RemainingRows, Link)>,
}

impl IntoResponse for Rows {
    fn into_response(self) -> Response {
        if let Some((tail, link)) = self.tail {
            return Response::new(Body::new(StreamedRows::new(self.json, tail, self.count, link)));
        }
        let end = end(self.count, self.next_link.as_deref());
        let chunks = [Bytes::from_static(BEGIN), Bytes::from(self.json), end];
        Response::new(Body::new(Chunks(chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect())))
    }
}

/// What stands before the rows.
pub(crate) const BEGIN: &[u8] = b"{\"value\":[";

/// What follows on the rows.
fn end(count: Option<i64>, next_link: Option<&str>) -> Bytes {
    match (count, next_link) {
        (None, None) => Bytes::from_static(b"]}"),
        (None, Some(link)) => Bytes::from(format!("],\"nextLink\":\"{link}\"}}")),
        (Some(count), None) => Bytes::from(format!("],\"count\":{count}}}")),
        (Some(count), Some(link)) => Bytes::from(format!("],\"count\":{count},\"nextLink\":\"{link}\"}}")),
    }
}

/// The body of a long answer. An error after its beginning can only break it off: the client sees that the body has no
/// end, and the log says why.
pub struct StreamedRows {
    chunks: VecDeque<Bytes>,
    tail: Option<RemainingRows>,
    count: Option<i64>,
    link: Option<Link>,
    ending: RowsEnd,
}

/// What follows on the rows: how many there are in all, and what `link` made of the cursor of the next page.
pub type RowsEnd = fn(Option<i64>, Option<&str>) -> Bytes;

impl StreamedRows {
    /// `json` is the beginning of the rows; [`BEGIN`] is not written yet.
    #[must_use]
    pub fn new(json: Vec<u8>, tail: RemainingRows, count: Option<i64>, link: Link) -> StreamedRows {
        let chunks = VecDeque::from([Bytes::from_static(BEGIN), Bytes::from(json)]);
        StreamedRows { chunks, tail: Some(tail), count, link: Some(link), ending: end }
    }

    /// With another end than that of REST.
    pub(crate) fn ending(self, ending: RowsEnd) -> StreamedRows {
        StreamedRows { ending, ..self }
    }

    /// What is written after the last row.
    fn end(&mut self, after: Option<&str>) -> Bytes {
        let link = after.and_then(|token| Some(self.link.take()?(token)));
        (self.ending)(self.count, link.as_deref())
    }
}

impl hyper::body::Body for StreamedRows {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        if let Some(chunk) = self.chunks.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        let Some(tail) = &mut self.tail else { return Poll::Ready(None) };
        let next = match ready!(tail.poll_next(cx)) {
            Ok(RowPart::Json(json)) => return Poll::Ready(Some(Ok(Frame::data(Bytes::from(json))))),
            Ok(RowPart::End { after }) => Ok(after),
            Err(cut_short) => Err(cut_short),
        };
        self.tail = None;
        Poll::Ready(Some(next.map(|after| Frame::data(self.end(after.as_deref())))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty() && self.tail.is_none()
    }
}

/// A body of a few pieces: they go out without being copied, and with a Content-Length.
pub(crate) struct Chunks(pub(crate) VecDeque<Bytes>);

impl hyper::body::Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|chunk| chunk.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn body(response: Response) -> String {
        let bytes = response.into_body().collect().await.expect("a body in memory").to_bytes();
        String::from_utf8(bytes.to_vec()).expect("JSON")
    }

    #[tokio::test]
    async fn rows_stand_in_value_and_the_next_page_beside_them() {
        let rows = |json: &str, next_link: Option<&str>| Rows {
            json: json.into(),
            next_link: next_link.map(Into::into),
            count: None,
            tail: None,
        };
        assert_eq!(body(rows("", None).into_response()).await, r#"{"value":[]}"#);
        assert_eq!(
            body(rows(r#"{"a":1},{"a":2}"#, None).into_response()).await,
            r#"{"value":[{"a":1},{"a":2}]}"#
        );
        let paged = rows(r#"{"a":1}"#, Some("http://h/?$after=x")).into_response();
        assert_eq!(body(paged).await, r#"{"value":[{"a":1}],"nextLink":"http://h/?$after=x"}"#);
        let counted = |next_link| Rows { count: Some(7), ..rows(r#"{"a":1}"#, next_link) };
        assert_eq!(body(counted(None).into_response()).await, r#"{"value":[{"a":1}],"count":7}"#);
        assert_eq!(
            body(counted(Some("http://h/")).into_response()).await,
            r#"{"value":[{"a":1}],"count":7,"nextLink":"http://h/"}"#
        );
    }
}
