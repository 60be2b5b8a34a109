//! The rest of a long answer, taken piece by piece or by nobody.

use postgres_protocol::message::backend;
use rowgate_sql::shape::Shape;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::{Broken, Connection, Went, broken};
use crate::wire::exchange::row_stream::End;
use crate::wire::exchange::rows::Rows;
use crate::wire::failure::{Part, Stop};

/// What is read of rows that nobody waits for, rather than closing the connection: what sockets hold anyway. To make a
/// new connection costs more than this, and to read on may cost anything.
const DRAIN: usize = 512 << 10;

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Goes on after the first chunk was cut, as fast as `pieces` are taken.
    ///
    /// It may be dropped at any point where it waits, if [`Connection::drain`] or the end of the connection follows.
    pub(in crate::wire) async fn go_on(
        &mut self,
        shape: &Shape,
        rows: &mut Rows,
        pieces: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Went, Broken> {
        let end = |rows: &mut Rows| End { n_rows: rows.n_rows, more: rows.more, last: rows.last() };
        let ended = loop {
            match self.read_rows(shape, rows).await {
                Ok(is_end) => {
                    let json = rows.cut();
                    if !json.is_empty() && pieces.send(json).await.is_err() {
                        return Ok(Went::Unheard);
                    }
                    if is_end {
                        break Ok(end(rows));
                    }
                    if rows.is_over() {
                        return Ok(Went::Full(end(rows)));
                    }
                }
                Err(Stop::Server(error)) if !error.fatal => break Err(error.failure(Part::Data).into()),
                Err(stop) => return Err(broken(stop, Part::Data)),
            }
        };
        self.ready().await.map_err(|stop| broken(stop, Part::Data))?;
        self.inbox.shrink();
        Ok(Went::Through(ended))
    }

    /// Reads what is left of an exchange whose answer nobody wants. True when that was little and the connection is
    /// good for another exchange.
    pub(in crate::wire) async fn drain(&mut self) -> bool {
        let mut n_bytes = 0;
        while n_bytes < DRAIN {
            match self.inbox.next(&mut self.stream).await {
                Ok((backend::READY_FOR_QUERY_TAG, body)) => {
                    let is_idle = body == b"I";
                    self.inbox.shrink();
                    return is_idle;
                }
                Ok((_, body)) => n_bytes += body.len(),
                Err(_) => return false,
            }
        }
        false
    }
}
