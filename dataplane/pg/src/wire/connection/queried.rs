//! SQL of a key, in a session of the key's own role: one statement in a read-only transaction that never commits.

use std::io;

use bytes::BytesMut;
use postgres_protocol::message::{backend, frontend};
use rowgate_sql::catalog::TypeKind;
use rowgate_sql::shape::Encoding;
use rowgate_sql::text::{Bind, Format};
use tokio::io::{AsyncRead, AsyncWrite};

use super::Connection;
use super::called::code;
use crate::wire::connection::frames::Fields;
use crate::wire::exchange::batch;
use crate::wire::failure::{Cause, Malformed, Part, QueryFailure, QueryFault, Refused, Stop};
use crate::wire::key_sessions::{Described, Query, QueryColumn, QueryOutcome, RowForm, Typed, Values};
use collected::Collected;

mod collected;

/// How a query went.
pub(in crate::wire) struct Queried {
    pub(in crate::wire) answer: Result<QueryOutcome, QueryFailure>,
    /// Its transaction is rolled back, and the session may be used again.
    pub(in crate::wire) is_whole: bool,
}

/// What is done with a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::wire) enum Step {
    /// PostgreSQL resolves its names, checks the rights and plans it, with NULL for every value. No row is read.
    Prepare,
    /// As [`Step::Prepare`], with the values.
    Bind,
    Run,
}

/// The transaction that reads cannot be made to write once it has a snapshot, which [`SETTINGS`] takes.
const BEGIN: &str = "begin isolation level read committed, read only";

/// The rest is what the session began with. `$1`: a statement outlives its replica by this much at most. The statement names each table with
/// its schema; were schemas of the tenant searched, `a.f` would call its function `f`, and an operator of its own might be taken for
/// PostgreSQL's. Temporary tables come last: a name that is looked for must not be one that the session made up.
const SETTINGS: &str = "select pg_catalog.num_nonnulls(pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), \
    pg_catalog.set_config('statement_timeout', $1, true))";

const TEXT: u32 = 25;
const JSON: u32 = 114;
const JSONB: u32 = 3802;

/// What an exchange within the transaction gives: the inner error is one after which the session goes on.
type Asked<T> = Result<Result<T, QueryFailure>, (Stop, Part)>;

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// One statement, in a transaction that is rolled back whatever comes of it. First PostgreSQL says what it would give: of one that
    /// gives no columns, such as SET or DO, nothing runs.
    ///
    /// Not to be dropped half-way unless the connection is dropped with it.
    pub(in crate::wire) async fn query(&mut self, query: &Query, step: Step) -> Queried {
        match self.queried(query, step).await {
            Ok((answer, is_whole)) => Queried { answer, is_whole },
            Err((stop, part)) => Queried { answer: Err(stop.query_failure(part)), is_whole: false },
        }
    }

    async fn queried(
        &mut self,
        query: &Query,
        step: Step,
    ) -> Result<(Result<QueryOutcome, QueryFailure>, bool), (Stop, Part)> {
        let of_ours = |stop| (stop, Part::Key);
        // Taken for an answer it would be somebody else's.
        if !self.inbox.is_drained() {
            return Err(of_ours(Stop::unasked()));
        }
        if query.text.contains('\0') {
            return Ok((Err(refused(QueryFault::Syntax, "a NUL character")), true));
        }
        self.say(|out| begin(query, out)).await.map_err(of_ours)?;
        self.begun().await.map_err(of_ours)?;
        let prepared = match self.described_query().await? {
            Ok(described) => match prepared(query, &described).await {
                Err(QueryFailure::Declined(problem)) => {
                    let checked = self.checked(query, described).await?;
                    Err(checked.err().unwrap_or(QueryFailure::Declined(problem)))
                }
                prepared => prepared,
            },
            Err(failure) => Err(failure),
        };
        let answer = match prepared {
            Ok((binds, collected)) => match self.ran(query, step, &binds, collected).await? {
                // The rest of the rows is not read.
                Ok((outcome, false)) => return Ok((Ok(outcome), false)),
                ran => ran.map(|(outcome, _)| outcome),
            },
            Err(failure) => Err(failure),
        };
        self.rolled_back().await.map_err(of_ours)?;
        Ok((answer, true))
    }

    /// Reads that the transaction has begun, with its settings.
    async fn begun(&mut self) -> Result<(), Stop> {
        self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        self.still_open().await?;
        for tag in [
            backend::PARSE_COMPLETE_TAG,
            backend::BIND_COMPLETE_TAG,
            backend::DATA_ROW_TAG,
            backend::COMMAND_COMPLETE_TAG,
        ] {
            self.expect(tag).await?;
        }
        self.still_open().await
    }

    /// Reads what the statement takes and would give.
    async fn described_query(&mut self) -> Asked<Described> {
        let described = async {
            self.expect(backend::PARSE_COMPLETE_TAG).await?;
            let parameters = parameters(self.expect(backend::PARAMETER_DESCRIPTION_TAG).await?)?;
            match self.answer().await? {
                (backend::ROW_DESCRIPTION_TAG, body) => {
                    Ok(Some(Described { parameters, columns: columns(body)? }))
                }
                (backend::NO_DATA_TAG, _) => Ok(None),
                _ => Err(Malformed("a message that is not a description").into()),
            }
        };
        let described = described.await;
        self.unless_broken(described, Part::DataParse).await.map(|described| {
            described.and_then(|described| {
                described.ok_or_else(|| refused(QueryFault::Result, "the statement gives no columns"))
            })
        })
    }

    /// Has PostgreSQL check the rights of a statement that is not to run: what it says of columns and types that the role may not read
    /// must not be said on.
    async fn checked(&mut self, query: &Query, described: Described) -> Asked<()> {
        let Described { parameters, columns } = described;
        let null = |oid: &u32| Bind { value: None, ..Bind::text(*oid, "") };
        let nulls: Vec<Bind> = parameters.iter().map(null).collect();
        let form = RowForm::Wire(vec![Format::Text; columns.len()]);
        let checked = self.ran(query, Step::Prepare, &nulls, Collected::new(query, columns, form)).await?;
        Ok(checked.map(|_| ()))
    }

    /// Binds the values, and runs the statement where that is the step. False: its rows are too long to be read to their end.
    async fn ran(
        &mut self,
        query: &Query,
        step: Step,
        binds: &[Bind],
        mut collected: Collected,
    ) -> Asked<(QueryOutcome, bool)> {
        let written = self.say(|out| run((query, step), binds, &collected.formats, out)).await;
        written.map_err(|stop| (stop, Part::Data))?;
        let bound = self.expect(backend::BIND_COMPLETE_TAG).await.map(drop);
        if bound.is_err() || step != Step::Run {
            let bound = self.unless_broken(bound, Part::DataBind).await?;
            return Ok(bound.map(|()| (collected.outcome(), true)));
        }
        let read = self.collect(&mut collected).await;
        if let Ok(false) = read {
            return match query.values {
                Values::Rows { .. } if 0 < collected.n_rows() => Ok(Ok((collected.outcome(), false))),
                Values::Rows { .. } | Values::One => Err((Stop::TooLong, Part::Data)),
            };
        }
        let read = self.unless_broken(read, Part::Data).await?;
        Ok(read.and_then(|_| {
            let outcome = collected.outcome();
            match query.values {
                Values::One if 1 < outcome.n_rows => {
                    Err(refused(QueryFault::Result, "the statement gives several rows"))
                }
                Values::One | Values::Rows { .. } => Ok((outcome, true)),
            }
        }))
    }

    /// Reads rows up to the last that was asked for. False: they are too long to be read to their end, or nobody takes them.
    async fn collect(&mut self, collected: &mut Collected) -> Result<bool, Stop> {
        loop {
            match self.answer().await? {
                (backend::DATA_ROW_TAG, body) => collected.add(body)?,
                (backend::COMMAND_COMPLETE_TAG | backend::PORTAL_SUSPENDED_TAG, _) => return Ok(true),
                _ => return Err(Malformed("a message that is not a row").into()),
            }
            if collected.is_too_long || !collected.hand_over().await {
                return Ok(false);
            }
        }
    }

    /// Reads up to the end of what was asked, where PostgreSQL has not ended the session.
    async fn unless_broken<T>(&mut self, read: Result<T, Stop>, part: Part) -> Asked<T> {
        let answer = match read {
            Ok(value) => Ok(value),
            Err(Stop::Server(error)) if !error.fatal => Err(error.query_failure(part)),
            Err(stop) => return Err((stop, part)),
        };
        self.still_open().await.map_err(|stop| (stop, part))?;
        Ok(answer)
    }

    /// The end of an exchange within the transaction. One that has left it is not met by another statement.
    async fn still_open(&mut self) -> Result<(), Stop> {
        match self.expect(backend::READY_FOR_QUERY_TAG).await? {
            b"T" | b"E" => Ok(()),
            _ => Err(Malformed("ReadyForQuery outside of the transaction").into()),
        }
    }

    async fn rolled_back(&mut self) -> Result<(), Stop> {
        self.say(|out| frontend::query("rollback", out)).await?;
        self.expect(backend::COMMAND_COMPLETE_TAG).await?;
        self.ready().await
    }
}

/// The values to send and what takes the rows, now that their types are known.
async fn prepared(query: &Query, described: &Described) -> Result<(Vec<Bind>, Collected), QueryFailure> {
    if query.values == Values::One
        && !matches!(described.columns[..], [QueryColumn { oid: JSON | JSONB, .. }])
    {
        return Err(refused(QueryFault::Result, "the statement does not give one column of json"));
    }
    let scalar = |column: &QueryColumn| Encoding::scalar(TypeKind::Base, column.oid);
    let typed = match &query.typing {
        Some(typing) => typing.typed(described).await?,
        None => Typed {
            binds: query.binds.clone(),
            rows: RowForm::Json(described.columns.iter().map(scalar).collect()),
        },
    };
    Ok((typed.binds, Collected::new(query, described.columns.clone(), typed.rows)))
}

/// Writes what begins the transaction and has PostgreSQL parse the statement in it.
fn begin(query: &Query, out: &mut BytesMut) -> io::Result<()> {
    frontend::query(BEGIN, out)?;
    frontend::parse("", SETTINGS, [TEXT], out)?;
    let timeout_ms = query.timeout_of_server().to_string();
    batch::bind("", [(0, Some(timeout_ms.as_bytes()))], [0], out)?;
    frontend::execute("", 0, out)?;
    frontend::sync(out);
    frontend::parse("", &query.text, query.binds.iter().map(|bind| bind.oid), out)?;
    frontend::describe(b'S', "", out)?;
    frontend::sync(out);
    Ok(())
}

/// Writes what binds the values, and what runs it, as far as the step goes.
fn run(
    (query, step): (&Query, Step),
    binds: &[Bind],
    formats: &[Format],
    out: &mut BytesMut,
) -> io::Result<()> {
    let has_values = step != Step::Prepare;
    let values = binds.iter().map(|bind| (code(bind.format), bind.value.as_deref().filter(|_| has_values)));
    batch::bind("", values, formats.iter().map(|format| code(*format)), out)?;
    if step == Step::Run {
        // One more than is taken says whether there are more.
        let n_rows = query.values.max_rows().saturating_add(1);
        frontend::execute("", i32::try_from(n_rows).unwrap_or(i32::MAX), out)?;
    }
    frontend::sync(out);
    Ok(())
}

/// The types of a ParameterDescription.
fn parameters(description: &[u8]) -> Result<Vec<u32>, Malformed> {
    let mut fields = Fields::new(description);
    let n_parameters = u16::from_be_bytes(fields.bytes()?);
    (0..n_parameters).map(|_| Ok(u32::from_be_bytes(fields.bytes()?))).collect()
}

/// Names and types of the columns of a RowDescription.
fn columns(description: &[u8]) -> Result<Vec<QueryColumn>, Malformed> {
    let mut fields = Fields::new(description);
    let n_columns = u16::from_be_bytes(fields.bytes()?);
    let mut columns = Vec::with_capacity(n_columns.into());
    for _ in 0..n_columns {
        let name = std::str::from_utf8(fields.text()?).map_err(|_| Malformed("a name that is not UTF-8"))?;
        let name = name.to_owned();
        // The table and the number of its column; then type, length, modifier and format.
        let _: [u8; 6] = fields.bytes()?;
        let oid = u32::from_be_bytes(fields.bytes()?);
        let _: [u8; 2] = fields.bytes()?;
        let modifier = i32::from_be_bytes(fields.bytes()?);
        let _: [u8; 2] = fields.bytes()?;
        columns.push(QueryColumn { name, oid, modifier });
    }
    Ok(columns)
}

/// A refusal of ours.
fn refused(why: QueryFault, message: &str) -> QueryFailure {
    QueryFailure::Refused(Refused { why, position: None, cause: Box::new(Cause::ours(message)) })
}
