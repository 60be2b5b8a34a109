//! The rows of a long answer that are still to come, as PostgreSQL gives them, and the cursor of the page after them.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rowgate_core::cursor::Binding;
use rowgate_core::derive::CursorKey;
use rowgate_pg::wire::{End, Failure, Piece, RowStream};

use crate::execute::{problem, read};
use crate::server::trace::Trace;

/// Rows that are still to come, and what the end of their page is made of.
pub struct RemainingRows {
    pub rest: RowStream,
    pub cursors: CursorKey,
    /// `None` where no page can follow.
    pub binding: Option<Binding>,
    pub trace: Arc<Trace>,
}

/// A part of them.
pub enum RowPart {
    /// Rows, joined by commas.
    Json(Vec<u8>),
    /// The page is over; `after`: the cursor of the next one, if there is one.
    End { after: Option<String> },
}

/// Ends a body in the middle, and the client's connection with it.
#[derive(Debug, thiserror::Error)]
#[error("the answer was cut short")]
pub struct CutShort;

impl RemainingRows {
    /// What comes next: rows, or the end of the page.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<RowPart, CutShort>> {
        Poll::Ready(match ready!(self.rest.poll_next(cx)) {
            Ok(Piece::Json(json)) => Ok(RowPart::Json(json)),
            Ok(Piece::End(end)) => {
                let _first = self.trace.rows.set(end.n_rows);
                self.after(&end).map(|after| RowPart::End { after })
            }
            Err(failure) => Err(self.failed(&failure)),
        })
    }

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
