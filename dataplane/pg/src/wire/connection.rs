//! One authenticated connection and the exchanges on it, over any stream of bytes.

use bytes::BytesMut;
use postgres_protocol::message::backend;
use rowgate_sql::shape::Shape;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::ask::{Answer, Asked, KeyRow, Operation, ReadPage, WriteOutcome};
use super::connection::frames::{Fields, Inbox, KEEP};
use super::connection::statements::Statements;
use super::exchange::batch::{self, Batch};
use super::exchange::fingerprint_check;
use super::exchange::key_statement::{self, Prepared};
use super::exchange::row_stream::End;
use super::exchange::rows::{self, Rows};
use super::exchange::session_settings;
use super::failure::{Cause, Failure, Malformed, Part, ServerError, Stop, WriteFailure};
use super::nested::relation_files::RelationFiles;
use super::pool::{StatementHash, Warm};
use super::request_pool::Sessions;

pub(super) mod called;
pub(crate) mod channel_binding;
pub(crate) mod connect;
pub(crate) mod frames;
mod nested;
pub(super) mod queried;
pub(crate) mod statements;
mod streaming;
pub(crate) mod transport;
mod written;

/// A connection between two exchanges: authenticated, no transaction, nothing unread.
pub(super) struct Connection<S> {
    stream: S,
    inbox: Inbox,
    out: BytesMut,
    sessions: Sessions,
    prepared: Prepared,
    statements: Statements,
    files: RelationFiles,
    session: Session,
    /// The batch was sent without its Sync, and the server waits for it.
    owes_sync: bool,
}

/// Process and secret by which the server knows the session when it is asked to cancel what runs there.
#[derive(Clone, Copy)]
pub(super) struct Session {
    pub(super) pid: i32,
    pub(super) secret: i32,
}

/// How far an exchange came before there was something to tell.
pub(super) enum Exchanged {
    /// To its end: the connection is good for another one, whatever the answer.
    Whole(Result<Answer, WriteFailure>),
    /// To the first chunk of rows.
    Begun(KeyRow, Rows),
}

/// How an exchange went after its first chunk.
#[derive(Debug)]
pub(super) enum Went {
    /// To its end: the connection is good for another one.
    Through(Result<End, Failure>),
    /// The page is complete, but rows are left unread.
    Full(End),
    /// Nobody takes the pieces any more.
    Unheard,
}

/// The connection must be closed.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) failure: WriteFailure,
    /// It broke before the key statement was through, so it may have been stale: on a new connection all may be well.
    pub(super) before_key: bool,
    /// The server said that nothing of the batch was done.
    pub(super) is_refused: bool,
}

impl Session {
    /// BackendKeyData.
    pub(super) fn parse(body: &[u8]) -> Result<Session, Malformed> {
        let mut fields = Fields::new(body);
        let pid = i32::from_be_bytes(fields.bytes()?);
        Ok(Session { pid, secret: i32::from_be_bytes(fields.bytes()?) })
    }
}

impl<S: Send + 'static> Warm for Connection<S> {
    fn knows(&self, hash: StatementHash) -> bool {
        self.statements.knows(hash)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Takes a stream on which the server has just said ReadyForQuery, with what else was read from it.
    pub(super) fn new(stream: S, inbox: Inbox, session: Session, sessions: Sessions) -> Connection<S> {
        Connection {
            stream,
            inbox,
            out: BytesMut::new(),
            sessions,
            prepared: Prepared::default(),
            statements: Statements::new(sessions),
            files: RelationFiles::default(),
            session,
            owes_sync: false,
        }
    }

    /// Whether the next caller finds the session as it was opened, with nothing said that no exchange asked for: a server that
    /// goes down says so behind the last answer.
    pub(super) fn is_as_opened(&mut self) -> bool {
        self.inbox.is_drained() && (self.sessions == Sessions::Pooled || !self.inbox.has_deviated())
    }

    pub(super) fn session(&self) -> Session {
        self.session
    }

    /// One question and its answer, or the beginning of a long one: then [`Connection::go_on`] must follow. True when the data
    /// statement was one that an earlier exchange had prepared, and the watch statement, if it was asked, found nothing new.
    ///
    /// Not to be dropped half-way unless the connection is dropped with it.
    pub(super) async fn exchange(&mut self, ask: &Asked) -> Result<(Exchanged, bool), Broken> {
        // Taken for an answer it would be somebody else's.
        if !self.inbox.is_drained() {
            return Err(broken(Stop::unasked(), Part::Key));
        }
        if let Some(nested) = &ask.nested {
            return self.exchange_nested(ask, nested).await;
        }
        self.out.clear();
        let batch = match batch::write(ask, self.sessions, self.prepared, &mut self.statements, &mut self.out)
        {
            Ok(batch) => batch,
            Err(error) => {
                let cause = Cause::ours(format!("the request cannot be encoded: {error}"));
                return Ok((Exchanged::Whole(Err(Failure::Internal(cause).into())), false));
            }
        };
        self.owes_sync = batch.waits;
        self.put().await.map_err(|stop| broken(stop, Part::Key))?;
        let key = match self.read_key(ask, batch.parses_key).await {
            Ok(key) => key,
            Err(Stop::Server(error)) if error.sqlstate == key_statement::NO_SUCH_ROLE && !error.fatal => {
                self.ready().await.map_err(|stop| broken(stop, Part::Key))?;
                return Ok((Exchanged::Whole(Err(Failure::DeadKey.into())), false));
            }
            Err(stop) => return Err(broken(stop, Part::Key)),
        };
        let is_expected = key.role == ask.role;
        let mut part = Part::Watch;
        let mut stands = true;
        let mut n_affected = 0;
        let rows = match self.begin_rows(ask, batch, &mut stands, &mut part).await {
            // Of a write nothing is sent that would run it.
            Ok(false) => self.skip_rows().await.map(|()| {
                let message =
                    "the types of the columns differ from those that the statement was compiled for";
                Err(WriteFailure::Any(Failure::Changed(Cause::ours(message))))
            }),
            // Rows of another role or of another catalog than the statement was made for.
            Ok(true) if !is_expected || !stands => {
                self.skip_rows().await.map(|()| Ok(Rows::new(&ask.shape, 0)))
            }
            Ok(true) => match ask.operation {
                // Nothing is told before it is committed.
                Operation::Write => self.read_written(&ask.shape).await.map(|(rows, n)| {
                    n_affected = n;
                    Ok(rows)
                }),
                Operation::Read { take } => {
                    let mut rows = Rows::new(&ask.shape, take);
                    match self.read_rows(&ask.shape, &mut rows).await {
                        Ok(false) => return Ok((Exchanged::Begun(key, rows), false)),
                        Ok(true) => Ok(Ok(rows)),
                        Err(stop) => Err(stop),
                    }
                }
            },
            Err(stop) => Err(stop),
        };
        let rows = match rows {
            Ok(rows) => rows,
            Err(Stop::Server(error)) if !error.fatal => Err(error.failure(part)),
            Err(stop) => return Err(broken(stop, part)),
        };
        let rows = match rows {
            // Whatever came of a statement for another catalog is no answer.
            Ok(_)
            | Err(
                WriteFailure::Any(Failure::Denied(_) | Failure::Invalid(_) | Failure::Internal(_))
                | WriteFailure::Unwritable(_),
            ) if !stands => {
                let message = "the tables have changed since the catalog was read";
                Err(Failure::Changed(Cause::ours(message)).into())
            }
            rows => rows,
        };
        let rows = match self.ready().await {
            Ok(()) => rows,
            // What is only known when it is committed, such as a deferred constraint; ReadyForQuery follows.
            Err(Stop::Server(error)) if !error.fatal => {
                self.ready().await.map_err(|stop| broken(stop, part))?;
                Err(error.failure(part))
            }
            Err(stop) => return Err(broken(stop, part)),
        };
        self.inbox.shrink();
        if matches!(rows, Err(WriteFailure::Any(Failure::Changed(_)))) {
            self.statements.forget(batch.statement);
        }
        // Whatever went wrong, the wrong role is why: the statement was compiled for another one.
        if !is_expected {
            return Ok((Exchanged::Whole(Err(Failure::WrongRole(key).into())), false));
        }
        let answer = rows.map(|rows| match ask.operation {
            Operation::Read { .. } => Answer::Read(ReadPage::whole(key, rows)),
            Operation::Write => Answer::Write(WriteOutcome::new(rows, n_affected)),
        });
        Ok((Exchanged::Whole(answer), stands && !batch.parses_data))
    }

    /// Reads that a pooler's server has the settings of ours.
    async fn read_settings(&mut self) -> Result<(), Stop> {
        if self.sessions == Sessions::Pooled {
            self.expect(backend::PARSE_COMPLETE_TAG).await?;
            self.expect(backend::BIND_COMPLETE_TAG).await?;
            if session_settings::is_standby(self.expect(backend::DATA_ROW_TAG).await?)? {
                return Err(Stop::Standby);
            }
            self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        }
        Ok(())
    }

    /// Writes what is to be said, and gives back the room of an unusually long one.
    async fn put(&mut self) -> Result<(), Stop> {
        self.stream.write_all(&self.out).await?;
        self.stream.flush().await?;
        if KEEP < self.out.capacity() {
            self.out = BytesMut::new();
        }
        Ok(())
    }

    /// Reads the answer to a Parse of ours where one was sent. True: the session has the statement from here on.
    async fn read_parsed(&mut self, is_parsed: bool) -> Result<bool, Stop> {
        if is_parsed {
            self.expect(backend::PARSE_COMPLETE_TAG).await?;
        }
        Ok(is_parsed && self.sessions == Sessions::Own)
    }

    async fn read_key(&mut self, ask: &Asked, is_parsed: bool) -> Result<KeyRow, Stop> {
        self.read_settings().await?;
        if self.read_parsed(is_parsed).await? {
            self.prepared.note(key_statement::form(ask));
        }
        self.expect(backend::BIND_COMPLETE_TAG).await?;
        self.inbox.expect_key();
        let key = match self.expect(backend::DATA_ROW_TAG).await {
            Ok(row) => key_statement::row(row).map_err(Stop::from),
            Err(stop) => Err(stop),
        };
        self.inbox.trust();
        let key = key?;
        self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        Ok(key)
    }

    /// Reads up to the first row, and whether the catalog `stands`. False: the statement gives other columns than the
    /// shape has.
    async fn begin_rows(
        &mut self,
        ask: &Asked,
        batch: Batch,
        stands: &mut bool,
        part: &mut Part,
    ) -> Result<bool, Stop> {
        *stands = self.read_check(ask, batch.parses_watch).await?;
        *part = Part::DataParse;
        for _ in 0..batch.n_closed {
            self.expect(backend::CLOSE_COMPLETE_TAG).await?;
            self.statements.closed();
        }
        let mut fits = true;
        if batch.parses_data {
            self.expect(backend::PARSE_COMPLETE_TAG).await?;
            self.statements.parsed(batch.statement, ask.hash, &ask.role, &ask.sql);
            self.expect(backend::PARAMETER_DESCRIPTION_TAG).await?;
            fits = match self.answer().await? {
                (backend::ROW_DESCRIPTION_TAG, body) => rows::fit(&ask.shape, body)?,
                (backend::NO_DATA_TAG, _) => ask.shape.columns.is_empty(),
                _ => return Err(Malformed("a message that is not a description").into()),
            };
            if batch.waits && !fits {
                return Ok(false);
            }
        }
        *part = Part::DataBind;
        if batch.waits {
            self.run(ask, batch).await?;
        }
        self.expect(backend::BIND_COMPLETE_TAG).await?;
        *part = if ask.is_write() { Part::Write } else { Part::Data };
        Ok(fits)
    }

    /// Reads whether the catalog stands, where that was asked.
    async fn read_check(&mut self, ask: &Asked, is_parsed: bool) -> Result<bool, Stop> {
        let Some(watched) = &ask.watched else { return Ok(true) };
        if self.read_parsed(is_parsed).await? {
            match ask.operation {
                Operation::Read { .. } => self.prepared.watch = true,
                Operation::Write => self.prepared.guard = true,
            }
        }
        self.expect(backend::BIND_COMPLETE_TAG).await?;
        let row = self.expect(backend::DATA_ROW_TAG).await?;
        // A guard that gives a row has not raised.
        let stands = ask.is_write() || fingerprint_check::fits(watched, row)?;
        self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        Ok(stands)
    }

    /// Reads rows up to the last, which is true, or until a chunk of them is ready or the page is full.
    async fn read_rows(&mut self, shape: &Shape, rows: &mut Rows) -> Result<bool, Stop> {
        loop {
            match self.answer().await? {
                (backend::DATA_ROW_TAG, body) => rows.add(shape, body)?,
                (backend::COMMAND_COMPLETE_TAG, _) => return Ok(true),
                _ => return Err(Malformed("a message that is not a row").into()),
            }
            if rows.is_chunk() || rows.is_over() {
                return Ok(false);
            }
        }
    }

    /// Reads all rows, if any were asked for, and writes none.
    async fn skip_rows(&mut self) -> Result<(), Stop> {
        while !self.owes_sync {
            match self.answer().await? {
                (backend::DATA_ROW_TAG, _) => {}
                (backend::COMMAND_COMPLETE_TAG, _) => return Ok(()),
                _ => return Err(Malformed("a message that is not a row").into()),
            }
        }
        Ok(())
    }

    /// Reads up to the end of the exchange. A transaction that is still open must never meet the next caller.
    async fn ready(&mut self) -> Result<(), Stop> {
        self.sync().await?;
        match self.expect(backend::READY_FOR_QUERY_TAG).await? {
            b"I" => Ok(()),
            _ => Err(Malformed("ReadyForQuery inside a transaction").into()),
        }
    }

    /// The body of the next message, which must be `tag`.
    async fn expect(&mut self, tag: u8) -> Result<&[u8], Stop> {
        match self.answer().await? {
            (found, body) if found == tag => Ok(body),
            _ => Err(Malformed("a message that is not the next one of the batch").into()),
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
    // A fatal error may be a pooler's, about a server that has done everything.
    let is_refused = matches!(&stop, Stop::Server(error) if !error.fatal);
    Broken { failure: stop.failure(part), before_key: part == Part::Key, is_refused }
}
