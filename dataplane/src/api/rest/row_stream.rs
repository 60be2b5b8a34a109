//! A long answer on its way: rows as PostgreSQL gives them, and the end once it is known.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use rowgate_core::cursor::Binding;
use rowgate_core::derive::CursorKey;
use rowgate_pg::wire::{End, Failure, Piece, Rest};

use crate::execute::{problem, read};
use crate::server::respond::{BEGIN, end};
use crate::server::trace::Trace;

/// Rows that are still to come, and what the end of their page is made of.
pub struct Tail {
    pub rest: Rest,
    pub cursors: CursorKey,
    /// `None` where no page can follow.
    pub binding: Option<Binding>,
    pub trace: Arc<Trace>,
}

/// Makes the address of the next page of a cursor.
pub type Link = Box<dyn FnOnce(&str) -> String + Send>;

/// The body of a long answer. An error after its beginning can only break it off: the client sees that the body has no
/// end, and the log says why.
pub struct Streamed {
    chunks: VecDeque<Bytes>,
    tail: Option<Tail>,
    count: Option<i64>,
    link: Option<Link>,
}

/// Ends a body in the middle, and the client's connection with it.
#[derive(Debug, thiserror::Error)]
#[error("the answer was cut short")]
pub struct CutShort;

impl Streamed {
    /// `json` is the beginning of the rows; [`BEGIN`] is not written yet.
    #[must_use]
    pub fn new(json: Vec<u8>, tail: Tail, count: Option<i64>, link: Link) -> Streamed {
        let chunks = VecDeque::from([Bytes::from_static(BEGIN), Bytes::from(json)]);
        Streamed { chunks, tail: Some(tail), count, link: Some(link) }
    }

    /// What is written after the last row.
    fn end(&mut self, after: Option<&str>) -> Bytes {
        let link = after.and_then(|token| Some(self.link.take()?(token)));
        end(self.count, link.as_deref())
    }
}

impl Tail {
    /// The cursor of the next page, if there is one.
    fn after(&self, end: &End) -> Result<Option<String>, CutShort> {
        let after = read::next(&self.cursors, self.binding, end.last.as_ref().filter(|_| end.more));
        after.map_err(|too_long| self.cut_short(&too_long.to_string()))
    }

    fn failed(&self, failure: &Failure) -> CutShort {
        self.cut_short(&problem::cause(failure))
    }

    fn cut_short(&self, cause: &str) -> CutShort {
        self.trace.fault("an answer was cut short", cause);
        CutShort
    }
}

impl Body for Streamed {
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
        let next = match ready!(tail.rest.poll_next(cx)) {
            Ok(Piece::Json(json)) => return Poll::Ready(Some(Ok(Frame::data(Bytes::from(json))))),
            Ok(Piece::End(end)) => {
                let _first = tail.trace.rows.set(end.n_rows);
                tail.after(&end)
            }
            Err(failure) => Err(tail.failed(&failure)),
        };
        self.tail = None;
        Poll::Ready(Some(next.map(|after| Frame::data(self.end(after.as_deref())))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty() && self.tail.is_none()
    }
}
