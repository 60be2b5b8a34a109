//! One authenticated connection and the exchanges on it, over any stream of bytes.

use bytes::BytesMut;
use postgres_protocol::message::backend;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::ask::{Ask, KeyRow, Page};
use super::batch::{self, Batch};
use super::failure::{Cause, Failure, Malformed, Part, ServerError, Stop};
use super::frames::Inbox;
use super::key::{self, Prepared};
use super::rows::{self, Rows};
use super::statements::Statements;
use super::watch;

/// A connection between two exchanges: authenticated, no transaction, nothing unread.
pub(super) struct Connection<S> {
    stream: S,
    inbox: Inbox,
    out: BytesMut,
    prepared: Prepared,
    statements: Statements,
}

/// The connection must be closed.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) failure: Failure,
    /// It broke before the key statement was through, so it may have been stale: on a new connection all may be well.
    pub(super) before_key: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Takes a stream on which the server has just said ReadyForQuery, with what else was read from it.
    pub(super) fn new(stream: S, inbox: Inbox) -> Connection<S> {
        Connection {
            stream,
            inbox,
            out: BytesMut::new(),
            prepared: Prepared::default(),
            statements: Statements::default(),
        }
    }

    /// One question and its whole answer. After `Ok` the connection is good for another exchange, whatever the answer.
    ///
    /// Not to be dropped half-way unless the connection is dropped with it.
    pub(super) async fn exchange(&mut self, ask: &Ask) -> Result<Result<Page, Failure>, Broken> {
        let (first, prepared) = self.once(ask).await?;
        match first {
            // The statement is one of before: parsed anew, it fits the same catalog more often than not.
            Err(Failure::Changed(_)) if prepared => Ok(self.once(ask).await?.0),
            answer => Ok(answer),
        }
    }

    /// The exchange, and true when the data statement was one that an earlier exchange had prepared and the watch
    /// statement, if it was asked, found nothing new.
    async fn once(&mut self, ask: &Ask) -> Result<(Result<Page, Failure>, bool), Broken> {
        self.out.clear();
        let batch = match batch::write(ask, self.prepared, &mut self.statements, &mut self.out) {
            Ok(batch) => batch,
            Err(error) => {
                let cause = Cause::ours(format!("no message can say it: {error}"));
                return Ok((Err(Failure::Internal(cause)), false));
            }
        };
        let key = match self.send_and_read_key(ask, batch).await {
            Ok(key) => key,
            Err(Stop::Server(error)) if error.sqlstate == key::NO_SUCH_ROLE && !error.fatal => {
                self.ready().await.map_err(|stop| broken(stop, Part::Key))?;
                return Ok((Err(Failure::DeadKey), false));
            }
            Err(stop) => return Err(broken(stop, Part::Key)),
        };
        let is_expected = key.role == ask.role;
        let mut part = Part::Watch;
        let mut stands = true;
        let rows = match self.read_rows(ask, batch, is_expected, &mut stands, &mut part).await {
            Ok(rows) => rows,
            Err(Stop::Server(error)) if !error.fatal => Err(error.failure(part)),
            Err(stop) => return Err(broken(stop, part)),
        };
        let rows = match rows {
            // Whatever came of a statement for another catalog is no answer.
            Ok(_) | Err(Failure::Denied(_) | Failure::Invalid(_) | Failure::Internal(_)) if !stands => {
                Err(Failure::Changed(Cause::ours(
                    "the catalog was read from other tables, or from these as they were",
                )))
            }
            rows => rows,
        };
        self.ready().await.map_err(|stop| broken(stop, part))?;
        self.inbox.shrink();
        if let Err(Failure::Changed(_)) = rows {
            self.statements.forget(batch.statement);
        }
        // Whatever went wrong, the wrong role is why: the statement was compiled for another one.
        if !is_expected {
            return Ok((Err(Failure::WrongRole(key)), false));
        }
        let page = rows.map(|mut rows| {
            let last = rows.last();
            Page { key, json: rows.json, n_rows: rows.n_rows, more: rows.more, last, count: rows.count }
        });
        Ok((page, stands && !batch.parses_data))
    }

    async fn send_and_read_key(&mut self, ask: &Ask, batch: Batch) -> Result<KeyRow, Stop> {
        self.stream.write_all(&self.out).await?;
        self.stream.flush().await?;
        if batch.parses_key {
            self.expect(backend::PARSE_COMPLETE_TAG).await?;
            self.prepared.note(&ask.credential);
        }
        self.expect(backend::BIND_COMPLETE_TAG).await?;
        let key = key::row(self.expect(backend::DATA_ROW_TAG).await?)?;
        self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        Ok(key)
    }

    /// `Err` inside: the statement does not fit. Rows that nobody `wants`, and those of another catalog than the one that
    /// `stands`, are read and not written.
    async fn read_rows<'a>(
        &mut self,
        ask: &'a Ask,
        batch: Batch,
        wants: bool,
        stands: &mut bool,
        part: &mut Part,
    ) -> Result<Result<Rows<'a>, Failure>, Stop> {
        if let Some(watched) = &ask.watched {
            if batch.parses_watch {
                self.expect(backend::PARSE_COMPLETE_TAG).await?;
                self.prepared.watch = true;
            }
            self.expect(backend::BIND_COMPLETE_TAG).await?;
            *stands = watch::fits(watched, self.expect(backend::DATA_ROW_TAG).await?)?;
            self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        }
        *part = Part::DataParse;
        for _ in 0..batch.n_closed {
            self.expect(backend::CLOSE_COMPLETE_TAG).await?;
            self.statements.closed();
        }
        let mut fits = true;
        if batch.parses_data {
            self.expect(backend::PARSE_COMPLETE_TAG).await?;
            self.statements.parsed(batch.statement, &ask.role, &ask.sql);
            self.expect(backend::PARAMETER_DESCRIPTION_TAG).await?;
            fits = rows::fit(&ask.shape, self.expect(backend::ROW_DESCRIPTION_TAG).await?)?;
        }
        *part = Part::Data;
        self.expect(backend::BIND_COMPLETE_TAG).await?;
        let mut rows = Rows::new(&ask.shape, ask.take);
        loop {
            match self.answer().await? {
                (backend::DATA_ROW_TAG, body) if wants && fits && *stands => rows.add(body)?,
                (backend::DATA_ROW_TAG, _) => {}
                (backend::COMMAND_COMPLETE_TAG, _) if fits => return Ok(Ok(rows)),
                (backend::COMMAND_COMPLETE_TAG, _) => {
                    let message = "the columns have other types than the statement was compiled for";
                    return Ok(Err(Failure::Changed(Cause::ours(message))));
                }
                _ => return Err(Malformed("another message than a row").into()),
            }
        }
    }

    /// Reads up to the end of the exchange. A transaction that is still open must never meet the next caller.
    async fn ready(&mut self) -> Result<(), Stop> {
        match self.expect(backend::READY_FOR_QUERY_TAG).await? {
            b"I" => Ok(()),
            _ => Err(Malformed("ReadyForQuery inside a transaction").into()),
        }
    }

    /// The body of the next message, which must be `tag`.
    async fn expect(&mut self, tag: u8) -> Result<&[u8], Stop> {
        match self.answer().await? {
            (found, body) if found == tag => Ok(body),
            _ => Err(Malformed("another message than the next one of its batch").into()),
        }
    }

    /// The next message that belongs to the exchange.
    async fn answer(&mut self) -> Result<(u8, &[u8]), Stop> {
        answer(&mut self.inbox, &mut self.stream).await
    }
}

/// The next message that is no error.
pub(super) async fn answer<'a, S>(inbox: &'a mut Inbox, stream: &mut S) -> Result<(u8, &'a [u8]), Stop>
where
    S: AsyncRead + Unpin,
{
    match inbox.next(stream).await? {
        (backend::ERROR_RESPONSE_TAG, body) => Err(Stop::Server(ServerError::parse(body)?)),
        message => Ok(message),
    }
}

fn broken(stop: Stop, part: Part) -> Broken {
    Broken { failure: stop.failure(part), before_key: part == Part::Key }
}
