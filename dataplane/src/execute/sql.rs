//! A SELECT that an API key wrote, from its checked text to its rows: in a session of the key's own role, read only, and never
//! longer than the tenant allows.

pub(crate) mod problem;
mod typing;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use futures_util::FutureExt as _;
use rowgate_core::problem::{Code, Problem};
use rowgate_core::role::SHARED_ROLE;
use rowgate_pg::wire::{KeyPermit, Query, QueryFailure, QueryOutcome, Values};
use rowgate_sql::shape::Shape;
use rowgate_sql::sql_request::SqlRequest;
use rowgate_sql::text::Sql;
use tokio::sync::mpsc;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::remaining_rows::CutShort;
use crate::execute::retry::{self, Attempt, RetryReason, note, question};
use crate::execute::wording::Wording;
use crate::server::trace::Trace;
pub(crate) use typing::{SqlColumn, distinct};
use typing::{SqlTyping, as_json};

/// Rows of an answer; what is beyond them is for an export.
pub const MAX_ROWS: usize = 10_000;
/// The rows of an answer as JSON.
const MAX_BYTES: usize = 32 << 20;

/// The rows that a SELECT gave, or their beginning.
pub struct SqlAnswer {
    pub columns: Vec<SqlColumn>,
    /// Objects joined by commas.
    pub json: Vec<u8>,
    /// What follows on them; `Err`: nothing does.
    pub rest: Result<RemainingSql, WholeSql>,
}

/// What there is to say of rows that are complete.
pub struct WholeSql {
    /// Rows were left out.
    pub truncated: bool,
    /// To be kept while they are in memory.
    pub permit: Option<KeyPermit>,
}

/// Rows that are still to come.
pub struct RemainingSql {
    chunks: mpsc::Receiver<Vec<u8>>,
    running: Running,
    /// How it ended, once that is known; chunks may still be waiting.
    ended: Option<Result<QueryOutcome, QueryFailure>>,
    trace: Arc<Trace>,
}

/// A part of them.
pub enum SqlPart {
    Json(Vec<u8>),
    /// The last rows, which may be none.
    End {
        json: Vec<u8>,
        whole: WholeSql,
    },
}

type Running = Pin<Box<dyn Future<Output = Result<QueryOutcome, QueryFailure>> + Send>>;

/// Runs the SELECT of `request`, or has PostgreSQL explain it.
pub async fn run(caller: &Caller, wording: &Wording, request: SqlRequest) -> Result<SqlAnswer, Problem> {
    let context = caller.reauthenticate().await?;
    retry::run(caller, context, &Select { wording, request }).await
}

struct Select<'a> {
    wording: &'a Wording,
    request: SqlRequest,
}

impl Attempt for Select<'_> {
    type Answer = SqlAnswer;

    async fn attempt(
        &self,
        caller: &Caller,
        context: &KeyContext,
        _: bool,
    ) -> Result<SqlAnswer, RetryReason> {
        let SqlRequest { select, explain, .. } = &self.request;
        may(context, &self.request)?;
        let mut nothing = Sql::new();
        nothing.lit("select");
        let no_rows = Shape { columns: Vec::new(), position: Vec::new(), count: None };
        let (check, freshness) = question(caller, context, true, (nothing, Arc::new(no_rows)));
        let (sender, mut chunks) = mpsc::channel(1);
        let arguments = self.request.arguments.clone();
        if *explain {
            // EXPLAIN checks no rights before it has values for its parameters.
            let typing = SqlTyping::new(caller.tenant.clone(), context, arguments.clone(), as_json);
            let query = Query {
                typing: Some(Arc::new(typing)),
                values: Values::Rows { max: MAX_ROWS },
                ..context.query(select, Vec::new())
            };
            let prepared = caller.tenant.queries.prepare(check.clone(), query).await;
            prepared.map_err(|failure| problem::of(caller, context, (select, self.wording), failure))?;
        }
        let typing = Arc::new(SqlTyping::new(caller.tenant.clone(), context, arguments, as_json));
        let text = match *explain {
            true => context.explain_of(select),
            false => context.text_of(select),
        };
        let query = Query {
            text,
            typing: Some(typing.clone()),
            values: Values::Rows { max: MAX_ROWS },
            max_bytes: MAX_BYTES,
            chunks: Some(sender),
            ..context.query(select, Vec::new())
        };
        let (queries, asked) = (caller.tenant.queries.clone(), Instant::now());
        let mut running: Running = Box::pin(async move { queries.run(check, query).await });
        let (first, ended) = tokio::select! {
            // A chunk may be waiting when the statement ends; it comes before its end.
            ended = &mut running => (chunks.try_recv().ok(), Some(ended)),
            Some(json) = chunks.recv() => (Some(json), None),
        };
        note(caller, context, freshness, asked, first.is_some() || matches!(ended, Some(Ok(_))));
        let (json, rest) = match (first, ended) {
            (Some(json), ended) => {
                let trace = caller.trace.clone();
                (json, Ok(RemainingSql { chunks, running, ended, trace }))
            }
            (None, Some(Ok(outcome))) => {
                let _first = caller.trace.rows.set(outcome.n_rows);
                (outcome.json, Err(WholeSql { truncated: outcome.more, permit: outcome.permit }))
            }
            (None, Some(Err(failure))) => {
                return Err(problem::of(caller, context, (select, self.wording), failure));
            }
            (None, None) => return Err(RetryReason::Final(Problem::internal())),
        };
        let columns = typing.columns().ok_or_else(|| RetryReason::Final(Problem::internal()))?;
        Ok(SqlAnswer { columns, json, rest })
    }
}

/// What may not run whoever asks, or by this key. A table that it may not read is told before PostgreSQL is asked, which has a name
/// to find before it has a right to check.
pub(crate) fn may(context: &KeyContext, request: &SqlRequest) -> Result<(), RetryReason> {
    if !context.writes_sql() {
        let what = "PUBLIC may execute or read something in this tenant's database that no policy filters (a warning of the Tenant names it), so that no SQL of callers runs there; read its entities, or export one";
        return Err(RetryReason::Refused(Problem::new(Code::Forbidden, what)));
    }
    if context.unreadable(&request.select).is_some() {
        return Err(RetryReason::Denied(problem::unfit(context, &request.select)));
    }
    if context.names_unguarded(&request.select) {
        let what = "row-level security of a table of the query was turned off in the database, so that the table is closed; it reopens automatically once that is repaired";
        return Err(RetryReason::Refused(Problem::new(Code::Unavailable, what)));
    }
    if request.explain && context.key.role != SHARED_ROLE {
        let what = "a plan shows how many rows there are in all, so only API keys without a scope may ask for one; leave explain out";
        return Err(RetryReason::Refused(Problem::new(Code::Forbidden, what)));
    }
    if request.explain && context.hides_rows(&request.select) {
        let what = "a plan shows rows that row-level security hides, and by which conditions, so there is one only of queries of tables without row-level security; leave explain out";
        return Err(RetryReason::Refused(Problem::new(Code::Forbidden, what)));
    }
    Ok(())
}

impl RemainingSql {
    /// What comes next. Not to be asked again after the end.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<SqlPart, CutShort>> {
        if self.ended.is_none()
            && let Poll::Ready(ended) = self.running.poll_unpin(cx)
        {
            self.ended = Some(ended);
        }
        if let Some(json) = ready!(self.chunks.poll_recv(cx)) {
            return Poll::Ready(Ok(SqlPart::Json(json)));
        }
        // Nothing more is handed over.
        let ended = match self.ended.take() {
            Some(ended) => ended,
            None => ready!(self.running.poll_unpin(cx)),
        };
        Poll::Ready(match ended {
            Ok(QueryOutcome { json, n_rows, more, permit, .. }) => {
                let _first = self.trace.rows.set(n_rows);
                Ok(SqlPart::End { json, whole: WholeSql { truncated: more, permit } })
            }
            Err(failure) => {
                self.trace.fault("an answer was cut short", &problem::cause(&failure));
                Err(CutShort)
            }
        })
    }
}
