//! A call of a routine, in a session of the key's own role.

use std::io;

use bytes::BytesMut;
use postgres_protocol::message::{backend, frontend};
use rowgate_sql::text::Format;
use tokio::io::{AsyncRead, AsyncWrite};

use super::Connection;
use crate::wire::connection::frames::Fields;
use crate::wire::exchange::batch;
use crate::wire::exchange::rows::{self, Rows};
use crate::wire::failure::{CallFailure, Cause, Failure, Malformed, Part, ServerError, Stop};
use crate::wire::key_sessions::{Call, CallOutcome};

/// How a call went.
pub(in crate::wire) struct Called {
    pub(in crate::wire) answer: Result<CallOutcome, CallFailure>,
    /// The session is between two statements and may be used again.
    pub(in crate::wire) is_whole: bool,
}

/// Who a session says it is, and since when it is there.
pub(in crate::wire) struct Own {
    pub(in crate::wire) pid: i32,
    /// In microseconds since 1970.
    pub(in crate::wire) since: i64,
}

/// A session of which the role was switched sees of itself only that it is there, so it asks as its login.
const INTRODUCE: &str = "\
begin; set local role none; select pg_catalog.pg_backend_pid(), (extract(epoch from backend_start) * 1000000)::pg_catalog.int8 \
from pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()); commit";

/// What [`Connection::renew`] looks at when all is discarded.
const ROLE: &str = "select pg_catalog.current_setting('role')";

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// What the server calls this session.
    pub(in crate::wire) async fn introduce(&mut self) -> Result<Own, Stop> {
        self.say(|out| frontend::query(INTRODUCE, out)).await?;
        for _ in ["begin", "set"] {
            self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        }
        self.expect(backend::ROW_DESCRIPTION_TAG).await?;
        let mut fields = Fields::of_row(self.expect(backend::DATA_ROW_TAG).await?)?;
        let own = Own { pid: number(fields.value()?)?, since: number(fields.value()?)? };
        for _ in ["select", "commit"] {
            self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        }
        self.ready().await?;
        Ok(own)
    }

    /// Waits until a statement is answered.
    pub(in crate::wire) async fn ask_nothing(&mut self) -> Result<(), Stop> {
        self.say(|out| frontend::query("select", out)).await?;
        for tag in [backend::ROW_DESCRIPTION_TAG, backend::DATA_ROW_TAG, backend::COMMAND_COMPLETE_TAG] {
            self.expect(tag).await?;
        }
        self.ready().await
    }

    /// One call, alone in its transaction: a procedure may end that and begin others.
    ///
    /// First PostgreSQL says what it would give; where that is not what the call was compiled for nothing runs. Its answer is
    /// complete before the transaction is: what is too long for one answer is never committed.
    ///
    /// Not to be dropped half-way unless the connection is dropped with it.
    pub(in crate::wire) async fn call(&mut self, call: &Call) -> Called {
        let refused = |failure| Called { answer: Err(failure), is_whole: true };
        match self.describe(call).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => return refused(failure.into()),
            Err(stop) => return broken(stop),
        }
        let write = |out: &mut BytesMut| -> io::Result<()> {
            let values = call.sql.binds().iter().map(|bind| (code(bind.format), bind.value.as_deref()));
            let formats = call.shape.columns.iter().map(|column| code(column.encoding.format()));
            batch::bind("", values, formats, out)?;
            frontend::execute("", 0, out)?;
            frontend::flush(out);
            Ok(())
        };
        if let Err(stop) = self.say(write).await {
            return broken(stop);
        }
        let ran = match self.expect(backend::BIND_COMPLETE_TAG).await {
            // A routine that is immutable runs while it is planned.
            Err(Stop::Server(error)) if !error.fatal => Err(match error.is_about_value() {
                true => Failure::from(error.failure(Part::DataBind)).into(),
                false => unplanned(error),
            }),
            Err(stop) => return broken(stop),
            Ok(_) => match self.read_called(call).await {
                Ok(Some(rows)) => Ok(rows),
                Ok(None) => return Called { answer: Err(Failure::TooLong.into()), is_whole: false },
                Err(Stop::Server(error)) if !error.fatal => Err(error.call_failure()),
                Err(stop) => return broken(stop),
            },
        };
        match self.settle().await {
            Ok(Ok(())) => Called {
                answer: ran.map(|rows| CallOutcome { n_rows: rows.n_rows, json: rows.whole() }),
                is_whole: true,
            },
            // Deferred constraints, or a transaction that could not be serialized.
            Ok(Err(error)) => refused(match ran {
                Ok(_) => error.call_failure(),
                Err(failure) => failure,
            }),
            Err(stop) => broken(stop),
        }
    }

    /// Leaves nothing of what statements have set or made in the session. False: it must be closed.
    pub(in crate::wire) async fn renew(&mut self, role: &str) -> bool {
        matches!(self.renewed(role).await, Ok(true))
    }

    async fn renewed(&mut self, role: &str) -> Result<bool, Stop> {
        let write = |out: &mut BytesMut| {
            frontend::query("discard all", out)?;
            frontend::query(ROLE, out)
        };
        self.say(write).await?;
        self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        self.ready().await?;
        self.expect(backend::ROW_DESCRIPTION_TAG).await?;
        let is_own =
            Fields::of_row(self.expect(backend::DATA_ROW_TAG).await?)?.value()? == Some(role.as_bytes());
        self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        self.ready().await?;
        self.inbox.shrink();
        Ok(is_own && self.is_as_opened())
    }

    /// Parses the call, and compares what it gives with what it was compiled for. The inner error: nothing has run, and the
    /// session is as before.
    async fn describe(&mut self, call: &Call) -> Result<Result<(), Failure>, Stop> {
        // Taken for an answer it would be somebody else's.
        if !self.inbox.is_drained() {
            return Err(Stop::unasked());
        }
        let types = call.sql.binds().iter().map(|bind| bind.oid);
        let write = |out: &mut BytesMut| -> io::Result<()> {
            frontend::parse("", call.sql.as_str(), types, out)?;
            frontend::describe(b'S', "", out)?;
            frontend::sync(out);
            Ok(())
        };
        self.say(write).await?;
        let described = self.described(call).await;
        match described {
            Err(Stop::Server(error)) if !error.fatal => {
                self.ready().await?;
                Ok(Err(match error.is_about_routine() {
                    true => Failure::Changed(error.into()),
                    false => error.failure(Part::DataParse).into(),
                }))
            }
            Err(stop) => Err(stop),
            Ok(fits) => {
                self.ready().await?;
                let message =
                    "the columns that the routine returns differ from those that the call was compiled for";
                Ok(if fits { Ok(()) } else { Err(Failure::Changed(Cause::ours(message))) })
            }
        }
    }

    async fn described(&mut self, call: &Call) -> Result<bool, Stop> {
        self.expect(backend::PARSE_COMPLETE_TAG).await?;
        self.expect(backend::PARAMETER_DESCRIPTION_TAG).await?;
        match self.answer().await? {
            (backend::ROW_DESCRIPTION_TAG, body) => Ok(rows::fit(&call.shape, body)?),
            (backend::NO_DATA_TAG, _) => Ok(call.shape.columns.is_empty()),
            _ => Err(Malformed("a message that is not a description").into()),
        }
    }

    /// All rows; `None`: more than one answer holds.
    async fn read_called(&mut self, call: &Call) -> Result<Option<Rows>, Stop> {
        let mut rows = Rows::of_call(&call.shape, call.keeps_rows);
        loop {
            match self.answer().await? {
                (backend::DATA_ROW_TAG, body) => {
                    rows.add(&call.shape, body)?;
                    if rows.is_long() {
                        return Ok(None);
                    }
                }
                (backend::COMMAND_COMPLETE_TAG, _) => return Ok(Some(rows)),
                _ => return Err(Malformed("a message that is not a row").into()),
            }
        }
    }

    /// Ends the transaction. The inner error is PostgreSQL's, which then has undone it.
    async fn settle(&mut self) -> Result<Result<(), ServerError>, Stop> {
        self.say(|out| {
            frontend::sync(out);
            Ok(())
        })
        .await?;
        match self.ready().await {
            Err(Stop::Server(error)) if !error.fatal => {
                self.ready().await?;
                Ok(Err(error))
            }
            other => other.map(Ok),
        }
    }

    pub(super) async fn say(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> io::Result<()>,
    ) -> Result<(), Stop> {
        self.out.clear();
        write(&mut self.out)?;
        self.put().await
    }
}

/// An error before the call was planned, or out of a routine that ran meanwhile. Nothing of it is committed.
fn unplanned(error: ServerError) -> CallFailure {
    match error.is_other_plan() {
        true => Failure::Changed(error.into()).into(),
        false => error.call_failure(),
    }
}

fn broken(stop: Stop) -> Called {
    Called { answer: Err(stop.call_failure()), is_whole: false }
}

pub(super) fn code(format: Format) -> i16 {
    match format {
        Format::Text => 0,
        Format::Binary => 1,
    }
}

fn number<T: std::str::FromStr>(value: Option<&[u8]>) -> Result<T, Malformed> {
    let text = value.and_then(|value| std::str::from_utf8(value).ok());
    text.and_then(|text| text.parse().ok()).ok_or(Malformed("a value that is not a number"))
}
