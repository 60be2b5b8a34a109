//! The rest of a long answer, piece by piece as its caller takes it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use rowgate_core::cursor::Position;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::wire::failure::Failure;

/// What is still to come of an answer. Nothing is read from PostgreSQL before somebody takes what was read. When it is
/// dropped the question is given up.
#[derive(Debug)]
pub struct RowStream {
    pieces: mpsc::Receiver<Vec<u8>>,
    /// Ends with the last piece; what it gives needs no room in the channel, which a slow caller may have filled.
    end: JoinHandle<Result<End, Failure>>,
    /// Nothing more is to be told, read or not.
    is_stopped: Arc<AtomicBool>,
}

/// One step of an answer.
#[derive(Debug)]
pub enum Piece {
    /// What follows on the JSON so far, of 64 KiB or more unless it is the last.
    Json(Vec<u8>),
    End(End),
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// How many rows were written.
    pub n_rows: usize,
    /// There are more rows than were taken.
    pub more: bool,
    /// Where the last written row stands in the order.
    pub last: Option<Position>,
}

impl RowStream {
    pub(crate) fn new(
        pieces: mpsc::Receiver<Vec<u8>>,
        end: JoinHandle<Result<End, Failure>>,
        is_stopped: Arc<AtomicBool>,
    ) -> RowStream {
        RowStream { pieces, end, is_stopped }
    }

    /// The next piece. Not to be asked again after the end or a failure.
    pub async fn next(&mut self) -> Result<Piece, Failure> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`RowStream::next`].
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, Failure>> {
        if let Some(json) =
            ready!(self.pieces.poll_recv(cx)).filter(|_| !self.is_stopped.load(Ordering::Acquire))
        {
            return Poll::Ready(Ok(Piece::Json(json)));
        }
        let ended = ready!(Pin::new(&mut self.end).poll(cx));
        Poll::Ready(match ended {
            Ok(end) => end.map(Piece::End),
            Err(error) => Err(Failure::ended(&error)),
        })
    }
}
