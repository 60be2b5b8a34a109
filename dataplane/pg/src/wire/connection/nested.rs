//! The exchange of a batch whose rows stand within each other.

use std::time::Instant;

use postgres_protocol::message::{backend, frontend};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Broken, Connection, Exchanged, answer, broken};
use crate::wire::ask::{Answer, Asked, KeyRow, ReadPage};
use crate::wire::connection::statements;
use crate::wire::exchange::{key_statement, rows};
use crate::wire::failure::{Cause, Failure, Malformed, Part, Stop, WriteFailure};
use crate::wire::nested::batch::{self, LevelStatement, NestedBatch};
use crate::wire::nested::lists::{Lists, NoAnswer};
use crate::wire::nested::{Nested, key_again, rewritten};

/// What was read of a batch.
struct Read<'n> {
    lists: Lists<'n>,
    /// The catalog is that of the request.
    stands: bool,
    /// Each statement gives the columns that its shape has.
    fits: bool,
    is_rewritten: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// As [`Connection::exchange`], of an ask with `nested`. True where the same batch, sent again at once, may be answered.
    pub(super) async fn exchange_nested(
        &mut self,
        ask: &Asked,
        nested: &Nested,
    ) -> Result<(Exchanged, bool), Broken> {
        self.out.clear();
        let session = (self.sessions, self.prepared);
        let batch = batch::write((ask, nested), session, &self.files, &mut self.statements, &mut self.out);
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => {
                let cause = Cause::ours(format!("the request cannot be encoded: {error}"));
                return Ok((refused(Failure::Internal(cause)), false));
            }
        };
        self.put().await.map_err(|stop| broken(stop, Part::Key))?;
        let key = match self.read_begin(ask, &batch).await {
            Ok(key) => key,
            Err(stop) => return self.without_key(stop).await,
        };
        let is_expected = key.role == ask.role;
        let mut part = Part::Watch;
        let read = match self.read_levels((ask, nested), &batch, is_expected, &mut part).await {
            Ok(read) if !batch.is_block => Ok((read, None)),
            Ok(read) => {
                let again = self.read_key_again((ask, nested), batch.parses_key_again).await;
                Ok((read, Some(again.map_err(|stop| broken(stop, Part::Key))?)))
            }
            // a batch that failed has skipped the rest
            Err(Stop::Server(error)) if !error.fatal => Err(error.failure(part)),
            Err(stop) => return Err(broken(stop, part)),
        };
        self.ended().await.map_err(|stop| broken(stop, part))?;
        self.inbox.shrink();
        if !is_expected {
            return Ok((refused(Failure::WrongRole(key)), false));
        }
        let changed = |message: &'static str| refused(Failure::Changed(Cause::ours(message)));
        let (read, again) = match read {
            Ok(read) => read,
            Err(failure) => {
                // it may have failed because tables were rewritten, and did not come to their files
                self.files.forget(&nested.relations);
                if matches!(failure, WriteFailure::Any(Failure::Changed(_))) {
                    batch.statements.iter().for_each(|sent| self.statements.forget(sent.number));
                }
                let was_prepared = batch.statements.iter().any(|sent| !sent.parses);
                return Ok((Exchanged::Whole(Err(failure)), was_prepared));
            }
        };
        let are_same_files = again.as_ref().is_none_or(|(_, are_same)| *are_same);
        match again {
            Some((None, _)) => return Ok((refused(Failure::DeadKey), false)),
            Some((Some(key_now), _)) if key_now.role != ask.role => {
                return Ok((refused(Failure::WrongRole(key_now)), false));
            }
            _ => {}
        }
        if !read.stands {
            return Ok((changed("the tables have changed since the catalog was read"), false));
        }
        if !read.fits {
            batch.statements.iter().for_each(|sent| self.statements.forget(sent.number));
            return Ok((
                changed("the types of the columns differ from those that a statement was compiled for"),
                false,
            ));
        }
        if read.is_rewritten || !batch.asks_rewritten && !are_same_files {
            return Ok((changed("a table was rewritten while it was read, or shortly before"), true));
        }
        if read.lists.are_cut() {
            return Ok((refused(Failure::ListsCut), false));
        }
        let page = match read.lists.page() {
            Ok(page) => page,
            Err(NoAnswer::TooLong) => return Ok((refused(Failure::TooLong), false)),
            Err(failure) => return Err(broken(failure.into(), Part::Data)),
        };
        Ok((Exchanged::Whole(Ok(Answer::Read(ReadPage::nested(key, page)))), false))
    }

    /// Reads up to the row of the key.
    async fn read_begin(&mut self, ask: &Asked, batch: &NestedBatch) -> Result<KeyRow, Stop> {
        if batch.is_block {
            self.prepared.begin |= self.read_parsed(batch.parses_begin).await?;
            self.read_command(b"BEGIN\0").await?;
        }
        self.read_key(ask, batch.parses_key).await
    }

    /// Reads whether the key still lives, `None` if it does not, and whether the tables have the files that were noted before.
    async fn read_key_again(
        &mut self,
        (ask, nested): (&Asked, &Nested),
        is_parsed: bool,
    ) -> Result<(Option<KeyRow>, bool), Stop> {
        if self.read_parsed(is_parsed).await? {
            self.prepared.note(key_again::form(ask));
        }
        self.expect(backend::BIND_COMPLETE_TAG).await?;
        self.inbox.expect_key();
        let row = match answer(&mut self.inbox, &mut self.stream).await {
            Ok((backend::DATA_ROW_TAG, row)) => key_again::row(row).map_err(Stop::from),
            Ok(_) => Err(Malformed("a message that is not the row of a key").into()),
            Err(stop) => Err(stop),
        };
        let now = Instant::now();
        let read = row.map(|again| (self.files.note(&nested.relations, again.files, now), again.key));
        self.inbox.trust();
        let (are_same, key) = read?;
        self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        Ok((key, are_same))
    }

    /// Reads the answer to a command of ours, which says what was done: a tenant's code may have prepared something else under its name.
    async fn read_command(&mut self, done: &[u8]) -> Result<(), Stop> {
        self.expect(backend::BIND_COMPLETE_TAG).await?;
        match self.expect(backend::COMMAND_COMPLETE_TAG).await? {
            said if said == done => Ok(()),
            _ => Err(Malformed("the answer to another command").into()),
        }
    }

    /// Reads all statements. Rows for another role or another catalog are not looked at.
    async fn read_levels<'n>(
        &mut self,
        (ask, nested): (&Asked, &'n Nested),
        batch: &NestedBatch,
        is_expected: bool,
        part: &mut Part,
    ) -> Result<Read<'n>, Stop> {
        let stands = self.read_check(ask, batch.parses_watch).await?;
        let mut read = Read { lists: Lists::new(nested), stands, fits: true, is_rewritten: false };
        for LevelStatement { level: at, number, parses } in &batch.statements {
            let level = &nested.levels[*at];
            *part = Part::DataParse;
            if let Some(sql) = level.sql.as_ref().filter(|_| *parses) {
                self.expect(backend::PARSE_COMPLETE_TAG).await?;
                self.statements.parsed(*number, statements::hash(&ask.role, sql), &ask.role, sql);
                self.expect(backend::PARAMETER_DESCRIPTION_TAG).await?;
                let body = self.expect(backend::ROW_DESCRIPTION_TAG).await?;
                read.fits &= rows::fit(level.statement_shape(), body)?;
            }
            *part = Part::DataBind;
            self.expect(backend::BIND_COMPLETE_TAG).await?;
            *part = Part::Data;
            loop {
                match self.answer().await? {
                    (backend::DATA_ROW_TAG, _) if !read.fits || !stands || !is_expected => {}
                    (backend::DATA_ROW_TAG, body) => read.lists.add(*at, body)?,
                    (backend::COMMAND_COMPLETE_TAG, _) => break,
                    _ => return Err(Malformed("a message that is not a row").into()),
                }
            }
            read.lists.end(*at);
        }
        self.prepared.rewritten |= self.read_parsed(batch.parses_rewritten).await?;
        if batch.asks_rewritten {
            self.expect(backend::BIND_COMPLETE_TAG).await?;
            read.is_rewritten = rewritten::is_rewritten(self.expect(backend::DATA_ROW_TAG).await?)?;
            self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        }
        for _ in 0..batch.n_closed {
            self.expect(backend::CLOSE_COMPLETE_TAG).await?;
            self.statements.closed();
        }
        if batch.is_block {
            self.prepared.commit |= self.read_parsed(batch.parses_commit).await?;
            self.read_command(b"COMMIT\0").await?;
        }
        Ok(read)
    }

    /// The end of an exchange whose key statement was refused.
    async fn without_key(&mut self, stop: Stop) -> Result<(Exchanged, bool), Broken> {
        match stop {
            Stop::Server(error) if error.sqlstate == key_statement::NO_SUCH_ROLE && !error.fatal => {
                self.ended().await.map_err(|stop| broken(stop, Part::Key))?;
                Ok((refused(Failure::DeadKey), false))
            }
            stop => Err(broken(stop, Part::Key)),
        }
    }

    /// Reads up to the end of the exchange, and ends a transaction that failed: the next caller must not meet it.
    async fn ended(&mut self) -> Result<(), Stop> {
        match self.expect(backend::READY_FOR_QUERY_TAG).await? {
            b"I" => return Ok(()),
            b"E" => {}
            _ => return Err(Malformed("ReadyForQuery inside a transaction").into()),
        }
        self.out.clear();
        frontend::query("rollback", &mut self.out)?;
        self.put().await?;
        self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        match self.expect(backend::READY_FOR_QUERY_TAG).await? {
            b"I" => Ok(()),
            _ => Err(Malformed("ReadyForQuery inside a transaction").into()),
        }
    }
}

fn refused(failure: Failure) -> Exchanged {
    Exchanged::Whole(Err(failure.into()))
}
