//! What a write needs besides: a connection that is known to live, a statement that is known to fit before it runs, and all
//! of its answer before any of it is told.

use postgres_protocol::message::{backend, frontend};
use rowgate_sql::shape::Shape;
use tokio::io::{AsyncRead, AsyncWrite};

use super::Connection;
use crate::wire::ask::Asked;
use crate::wire::exchange::batch::{self, Batch};
use crate::wire::exchange::rows::Rows;
use crate::wire::failure::{Malformed, Stop};

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Runs the data statement, which was parsed and fits.
    pub(super) async fn run(&mut self, ask: &Asked, batch: Batch) -> Result<(), Stop> {
        self.out.clear();
        batch::run(ask, batch.statement, &mut self.out)?;
        self.owes_sync = false;
        self.put().await
    }

    /// Ends the exchange where that was not sent along: what came before was refused, or does not fit.
    pub(super) async fn sync(&mut self) -> Result<(), Stop> {
        if std::mem::take(&mut self.owes_sync) {
            self.out.clear();
            frontend::sync(&mut self.out);
            self.put().await?;
        }
        Ok(())
    }

    /// Reads all that a write gives back, and how many rows it has written. What is more than an answer holds is left out: it
    /// is committed by then, and an error would make somebody do it again.
    pub(super) async fn read_written(&mut self, shape: &Shape) -> Result<(Rows, u64), Stop> {
        let mut rows = Rows::of_write(shape);
        loop {
            match self.answer().await? {
                (backend::DATA_ROW_TAG, body) => {
                    rows.add(shape, body)?;
                    rows.give_up_if_long();
                }
                (backend::COMMAND_COMPLETE_TAG, body) => return Ok((rows, n_affected(body)?)),
                _ => return Err(Malformed("a message that is not a row").into()),
            }
        }
    }

    /// Whether the server has neither closed the connection nor said anything unasked, as far as has arrived: whoever writes
    /// on a stale connection would not learn whether it was done.
    pub(in crate::wire) fn is_fresh(&mut self) -> bool {
        self.inbox.look(&mut self.stream) && self.inbox.is_drained()
    }
}

/// The number of a CommandComplete: `INSERT 0 3`, `DELETE 1`.
fn n_affected(body: &[u8]) -> Result<u64, Malformed> {
    let text = std::str::from_utf8(body).ok().map(|text| text.trim_end_matches('\0'));
    let number = text.and_then(|text| text.rsplit(' ').next()?.parse().ok());
    number.ok_or(Malformed("a command tag without its number of rows"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_how_many_rows_it_wrote() {
        for (body, n) in [(&b"INSERT 0 3\0"[..], 3), (b"DELETE 0\0", 0), (b"UPDATE 12\0", 12)] {
            assert_eq!(n_affected(body), Ok(n));
        }
        for body in [&b""[..], b"INSERT\0", b"DELETE x\0", b"\xff\0"] {
            assert!(n_affected(body).is_err(), "{body:?}");
        }
    }
}
