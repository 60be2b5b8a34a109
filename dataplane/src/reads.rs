//! A read from key to rows: made for the catalog at hand, run, and made again when the database knows better.

use std::sync::Arc;
use std::time::Instant;

use rowgate_core::cursor::{self, Position};
use rowgate_core::derive::CursorKey;
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::{Ask, Cause, Failure, Mode, Page};
use rowgate_sql::compile::Compiled;
use rowgate_sql::shape::Shape;
use rowgate_sql::text::Sql;

use crate::auth::Caller;
use crate::entity_tags::Tagged;
use crate::freshness::Turn;
use crate::streamed::Tail;
use crate::tenant::Known;

/// Rows, as JSON, and the cursor of the page after them. Of a long answer this is the beginning, and `tail` knows the
/// cursor.
pub struct Answer {
    pub json: Vec<u8>,
    pub after: Option<String>,
    /// `None` where nobody asked.
    pub count: Option<Count>,
    pub tail: Option<Tail>,
    /// Of the one row that was asked for, where it keeps its version.
    pub tagged: Option<Tagged>,
}

/// How many rows there are, on this page and on all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Known(i64),
    /// A page after others has no row that could say it.
    Unsaid,
}

impl Count {
    pub fn known(self) -> Option<i64> {
        match self {
            Count::Known(count) => Some(count),
            Count::Unsaid => None,
        }
    }
}

/// The next page would begin behind values that no cursor holds.
#[derive(Debug, thiserror::Error)]
#[error("the page ends at values of $orderby that are too long for a cursor")]
pub(crate) struct TooLong;

/// Tries in all: with the catalog at hand, with a newer one, and with one that changed meanwhile.
pub(crate) const TRIES: usize = 3;

/// How long reconciling takes between a membership and the record of it, several times over.
const SETTLE: std::time::Duration = std::time::Duration::from_millis(50);

/// Why a try gave no answer.
pub(crate) enum Miss {
    /// The answer stands.
    Settled(Problem),
    /// It may come of an old catalog or key record: look again, and only then answer with the problem.
    Doubtful(Problem),
    /// Somebody else made the row at the same time, and nothing of this write stands.
    Raced(Problem),
    /// The catalog is not what the database holds: load it whatever its generation says.
    Changed(Problem),
    /// A grant is missing: it is on its way, or it went away.
    Denied(Problem),
    /// The key's catalog generation is newer than ours.
    Behind,
}

/// Runs what `make` compiles, in the name of the caller's key. No problem is told to a key before the database has
/// said in this request that it lives: the answer to a dead key is 401 and nothing else.
pub async fn run(
    caller: &Caller,
    cursors: &CursorKey,
    make: impl Fn(&Known) -> Result<Compiled, Problem> + Send + Sync,
) -> Result<Answer, Problem> {
    let mut known = caller.recognize().await?;
    for left in (0..TRIES).rev() {
        caller.note(&known);
        let problem = match attempt(caller, &known, cursors, &make, left == 0).await {
            Ok(answer) => return Ok(answer),
            Err(Miss::Settled(problem) | Miss::Raced(problem)) => return Err(problem),
            Err(Miss::Behind) => Problem::unavailable(),
            Err(Miss::Doubtful(problem)) => problem,
            // a key that changes its permission set has the new grants a moment before its record says so; a column made
            // anew under its old name has none
            Err(Miss::Denied(problem)) if 0 < left => {
                tokio::time::sleep(SETTLE).await;
                caller.tenant.compare(&known.snapshot).await?;
                known = caller.tenant.recognize_anew(&caller.credential).await?;
                drop(problem);
                continue;
            }
            Err(Miss::Denied(problem)) => problem,
            Err(Miss::Changed(problem)) => {
                caller.tenant.reload(Some(&known.snapshot)).await?;
                problem
            }
        };
        let now = caller.tenant.recognize_anew(&caller.credential).await?;
        if left == 0 || now.is_same(&known) {
            return Err(problem);
        }
        known = now;
    }
    Err(Problem::unavailable())
}

async fn attempt(
    caller: &Caller,
    known: &Known,
    cursors: &CursorKey,
    make: &(impl Fn(&Known) -> Result<Compiled, Problem> + Send + Sync),
    is_last: bool,
) -> Result<Answer, Miss> {
    let compiled = compiled(caller, known, make)?;
    let (sql, shape, take) = (compiled.sql, compiled.shape.clone(), compiled.take);
    // The last try takes what it gets: where tables change without end, answers must come all the same.
    let page = ask(caller, known, !is_last, sql, shape, take, Mode::Read).await.map_err(|failure| {
        // made anew, because the statement went along with the question
        told(caller, known, failure, |parameter| make(known).ok()?.misfit(parameter))
    })?;
    if page.key.generation > known.snapshot.catalog.generation && !is_last {
        return Err(Miss::Behind);
    }
    let after = next(cursors, compiled.binding, page.last.as_ref().filter(|_| page.more));
    let after = after.map_err(|too_long| {
        Miss::Settled(Problem::new(
            Code::InvalidOrderBy,
            format!("{too_long}; order by shorter fields, or ask for more rows at once"),
        ))
    })?;
    let count = compiled.shape.count.map(|_| match page.count {
        Some(count) => Count::Known(count),
        None if compiled.is_first_page => Count::Known(0),
        None => Count::Unsaid,
    });
    let is_tagged = compiled.is_tagged.then_some(page.last.as_ref()).flatten();
    let tagged = Tagged::new(known, &compiled.entity, &compiled.shape, is_tagged);
    if page.rest.is_none() {
        // A second look at the same question gave no rows.
        let _first = caller.trace.rows.set(page.n_rows);
    }
    let tail = page.rest.map(|rest| Tail {
        rest,
        cursors: cursors.clone(),
        binding: compiled.binding,
        trace: caller.trace.clone(),
    });
    Ok(Answer { json: page.json, after, count, tail, tagged })
}

/// What `make` makes of the request for the key as it is known.
pub(crate) fn compiled(
    caller: &Caller,
    known: &Known,
    make: impl Fn(&Known) -> Result<Compiled, Problem>,
) -> Result<Compiled, Miss> {
    caller.check_role(known).and_then(|()| make(known)).map_err(|problem| match known.fresh {
        true => Miss::Settled(problem),
        false => Miss::Doubtful(problem),
    })
}

/// Asks, and notes what an answer tells of the tenant and of the key. `watches`: also whether the catalog still fits, when it
/// is this request's turn.
pub(crate) async fn ask(
    caller: &Caller,
    known: &Known,
    watches: bool,
    sql: Sql,
    shape: Arc<Shape>,
    take: usize,
    mode: Mode,
) -> Result<Page, Failure> {
    let (watched, turn) = known.snapshot.turn().filter(|_| watches).unzip();
    let ask = Ask {
        watched,
        credential: caller.credential.clone(),
        role: known.key.role.clone(),
        statement_timeout_ms: known.snapshot.catalog.limits.statement_timeout_ms,
        sql,
        shape,
        take,
        mode,
    };
    let asked = Instant::now();
    let answered = caller.tenant.lane.read(ask).await;
    caller.trace.note_exchange(&caller.tenant, asked.elapsed());
    let page = answered?;
    answers(caller, known, turn);
    Ok(page)
}

/// Notes what any answer tells: the tenant's database is there, the key was used, and the catalog fits where this was the
/// `turn` to ask.
pub(crate) fn answers(caller: &Caller, known: &Known, turn: Option<Turn>) {
    caller.tenant.note(true, "");
    caller.tenant.uses.note(&known.used, Instant::now());
    if let Some(turn) = turn {
        known.snapshot.confirm(turn);
    }
}

/// The cursor of the page after the row that stands at `last`; without a row, or where no page can follow, there is none.
pub(crate) fn next(
    cursors: &CursorKey,
    binding: Option<cursor::Binding>,
    last: Option<&Position>,
) -> Result<Option<String>, TooLong> {
    let token = binding.zip(last).map(|(binding, last)| cursor::encode(cursors, binding, last));
    match token {
        Some(token) if cursor::MAX_TOKEN_LEN < token.len() => Err(TooLong),
        token => Ok(token),
    }
}

/// A failure of the wire as the caller is told it. What PostgreSQL said goes to the log, where it is a fault of ours.
/// `misfit` says what is wrong with the value of a parameter, where it is one of the request.
pub(crate) fn told(
    caller: &Caller,
    known: &Known,
    failure: Failure,
    misfit: impl FnOnce(usize) -> Option<Problem>,
) -> Miss {
    let trace = &caller.trace;
    match failure {
        Failure::DeadKey => {
            known.snapshot.forget(&caller.credential);
            Miss::Settled(Problem::unauthorized())
        }
        Failure::WrongRole(_) => Miss::Doubtful(Problem::unavailable()),
        // A grant that went away: what is not granted is not there.
        Failure::Denied(_) => Miss::Denied(Problem::entity_not_found()),
        Failure::Invalid(cause) => Miss::Settled(cause.parameter.and_then(misfit).unwrap_or_else(|| {
            Problem::new(
                Code::InvalidValue,
                "a value does not fit its column, a computation leaves its range or divides by zero, or two columns have collations that cannot be \
                 compared; compare with values of the column's type",
            )
        })),
        Failure::Changed(cause) => {
            trace.fault("the tables are not those of the catalog", &text(&cause));
            Miss::Changed(Problem::unavailable())
        }
        Failure::Timeout => Miss::Settled(Problem::new(
            Code::StatementTimeout,
            "the query took longer than this tenant allows; ask for fewer rows, or filter by an indexed column",
        )),
        Failure::Busy(cause) => {
            tracing::debug!(tenant = %caller.tenant.slug, cause, "a request was refused");
            Miss::Settled(Problem::busy())
        }
        Failure::Unavailable(cause) => {
            caller.tenant.note(false, &cause);
            Miss::Settled(Problem::unavailable())
        }
        // Only a write or a call gives these.
        Failure::NoLogin(cause) | Failure::Lost(cause) | Failure::Raised(cause) => {
            trace.fault("a read ended as a call does", &cause);
            Miss::Settled(Problem::internal())
        }
        Failure::Ended | Failure::TooLong => {
            trace.fault("a read ended as a call does", "");
            Miss::Settled(Problem::internal())
        }
        Failure::Violation(cause)
        | Failure::Routine(cause)
        | Failure::Conflict(cause)
        | Failure::Unwritable(cause)
        | Failure::Internal(cause) => {
            trace.fault("the database answered with an unexpected error", &text(&cause));
            Miss::Settled(Problem::internal())
        }
    }
}

/// What the log may hold of a failure after the beginning of its answer was sent.
pub(crate) fn cause(failure: &Failure) -> String {
    match failure {
        Failure::Denied(cause)
        | Failure::Invalid(cause)
        | Failure::Changed(cause)
        | Failure::Violation(cause)
        | Failure::Routine(cause)
        | Failure::Conflict(cause)
        | Failure::Unwritable(cause)
        | Failure::Internal(cause) => text(cause),
        Failure::Unavailable(text) | Failure::NoLogin(text) | Failure::Lost(text) => text.clone(),
        Failure::DeadKey
        | Failure::WrongRole(_)
        | Failure::Timeout
        | Failure::Busy(_)
        | Failure::Ended
        | Failure::Raised(_)
        | Failure::TooLong => failure.to_string(),
    }
}

/// What the log may hold. An error that a tenant's own function raised may quote values of the request.
fn text(cause: &Cause) -> String {
    match cause.sqlstate.as_deref() {
        Some(code) if code.starts_with("P0") || code.starts_with("RG") => {
            format!("{code} (raised by a routine)")
        }
        Some(code) => format!("{code}: {}", cause.message),
        None => cause.message.clone(),
    }
}
