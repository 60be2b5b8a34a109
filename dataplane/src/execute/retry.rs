//! A request is tried again when the database knows better than the catalog or the key record that it was made for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::{Ask, Failure, Nested, ReadPage, WriteFailure, WriteOutcome};
use rowgate_sql::shape::Shape;
use rowgate_sql::text::Sql;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::tenants::freshness::FreshnessCheck;

/// In all: with the catalog at hand, with a newer one, and with one that changed meanwhile.
const MAX_ATTEMPTS: usize = 3;

/// How long reconciling takes between a membership and the record of it, several times over.
const GRANT_DELAY: Duration = Duration::from_millis(50);

/// Why an attempt gave no answer: to retry, and how, or to answer with the problem.
pub(crate) enum RetryReason {
    /// The answer stands.
    Final(Problem),
    /// The request does not fit the catalog: it stands, unless the key record and the catalog are those of before.
    Refused(Problem),
    /// It may come of an old catalog or key record: look again, and only then answer with the problem.
    Doubtful(Problem),
    /// A concurrent request created the row, and nothing of this write was applied.
    Raced(Problem),
    /// The catalog is not what the database holds: load it whatever its generation says.
    Changed(Problem),
    /// A grant is missing: it is on its way, or it went away.
    Denied(Problem),
    /// The key's catalog generation is newer than ours.
    Behind,
}

/// What is tried.
pub(crate) trait Attempt {
    type Answer;

    /// One try, for the key as it is known now, which has the role that the caller names.
    fn attempt(
        &self,
        caller: &Caller,
        context: &KeyContext,
        is_last: bool,
    ) -> impl Future<Output = Result<Self::Answer, RetryReason>> + Send;
}

/// The key of a request that `may` be sent on, which it is asked by the catalog of now. As with [`run`] no problem is
/// answered to a dead key.
pub(crate) async fn may(
    caller: &Caller,
    may: impl Fn(&KeyContext) -> Result<(), Problem> + Send + Sync,
) -> Result<KeyContext, Problem> {
    let context = caller.authenticate().await?;
    run(caller, context, &CatalogCheck { may }).await
}

/// What is asked of the catalog alone.
struct CatalogCheck<F> {
    may: F,
}

impl<F: Fn(&KeyContext) -> Result<(), Problem> + Send + Sync> Attempt for CatalogCheck<F> {
    type Answer = KeyContext;

    async fn attempt(&self, _: &Caller, context: &KeyContext, _: bool) -> Result<KeyContext, RetryReason> {
        (self.may)(context).map_err(RetryReason::Refused)?;
        Ok(context.clone())
    }
}

/// Tries until there is an answer, or none is to be had, from `context` on, with which the request was counted against the rate
/// limit of its key. No problem is answered to a key before the database has said in this request that it lives: the answer to
/// a dead key is 401 and nothing else.
pub(crate) async fn run<T: Attempt>(
    caller: &Caller,
    mut context: KeyContext,
    wanted: &T,
) -> Result<T::Answer, Problem> {
    let mut has_raced = false;
    for left in (0..MAX_ATTEMPTS).rev() {
        caller.note(&context);
        let answer = match caller.check_role(&context) {
            Ok(()) => wanted.attempt(caller, &context, left == 0).await,
            Err(problem) => Err(RetryReason::Refused(problem)),
        };
        let problem = match answer {
            Ok(answer) => return Ok(answer),
            Err(RetryReason::Final(problem)) => return Err(problem),
            // no statement is sent that would ask along whether the entity is open again
            Err(RetryReason::Refused(problem)) if problem.code == Code::Unavailable => {
                caller.tenant.check_freshness(context.snapshot.clone()).await?;
                problem
            }
            Err(RetryReason::Refused(problem)) if context.fresh => return Err(problem),
            // who came first has been here by now
            Err(RetryReason::Raced(problem)) if has_raced || left == 0 => return Err(problem),
            Err(RetryReason::Raced(_)) => {
                has_raced = true;
                continue;
            }
            Err(RetryReason::Behind) => Problem::unavailable(),
            Err(RetryReason::Refused(problem) | RetryReason::Doubtful(problem)) => problem,
            // a key that changes its permission set has the new grants a moment before its record says so; a column that
            // was dropped and created again has none
            Err(RetryReason::Denied(_)) if 0 < left => {
                tokio::time::sleep(GRANT_DELAY).await;
                caller.tenant.reload_if_changed(&context.snapshot).await?;
                context = caller.tenant.authenticate_fresh(&caller.credential).await?;
                continue;
            }
            Err(RetryReason::Denied(problem)) => problem,
            Err(RetryReason::Changed(problem)) => {
                caller.tenant.reload(Some(&context.snapshot)).await?;
                problem
            }
        };
        let now = caller.tenant.authenticate_fresh(&caller.credential).await?;
        if left == 0 || now.is_same(&context) {
            return Err(problem);
        }
        context = now;
    }
    Err(Problem::unavailable())
}

/// SQL and the shape of its rows.
pub(crate) type Statement = (Sql, Arc<Shape>);

/// What is asked in the name of a key, by the catalog that it is known with. `watches`: also whether the catalog still fits,
/// when it is this request's turn, which the answer confirms.
pub(crate) fn question(
    caller: &Caller,
    context: &KeyContext,
    watches: bool,
    (sql, shape): Statement,
) -> (Ask, Option<FreshnessCheck>) {
    let (watched, check) = context.snapshot.due_check().filter(|_| watches).unzip();
    let ask = Ask {
        watched,
        key: context.key.clone(),
        by_any_secret: caller.credential.is_of_owner(),
        role: context.key.role.clone(),
        statement_timeout_ms: context.snapshot.catalog.limits.statement_timeout_ms,
        sql,
        shape,
        nested: None,
    };
    (ask, check)
}

/// Reads up to `take` rows, and notes what an answer means for the tenant and for the key. `watches`: see [`question`].
pub(crate) async fn read(
    caller: &Caller,
    context: &KeyContext,
    watches: bool,
    statement: Statement,
    take: usize,
) -> Result<ReadPage, Failure> {
    let (ask, check) = question(caller, context, watches, statement);
    let asked = Instant::now();
    let answered = caller.tenant.request_pool.read(ask, take).await;
    note(caller, context, check, asked, answered.is_ok());
    answered
}

/// As [`read`], of rows within rows.
pub(crate) async fn read_nested(
    caller: &Caller,
    context: &KeyContext,
    watches: bool,
    nested: Nested,
) -> Result<ReadPage, Failure> {
    let first = nested.first();
    let sql = first.sql.clone().expect("rows that stand within no others have a statement");
    let (mut ask, check) = question(caller, context, watches, (sql, first.shape.clone()));
    let take = first.take;
    ask.nested = Some(Arc::new(nested));
    let asked = Instant::now();
    let answered = caller.tenant.request_pool.read(ask, take).await;
    note(caller, context, check, asked, answered.is_ok());
    answered
}

/// As [`read`], of a statement that writes.
pub(crate) async fn write(
    caller: &Caller,
    context: &KeyContext,
    watches: bool,
    statement: Statement,
) -> Result<WriteOutcome, WriteFailure> {
    let (ask, check) = question(caller, context, watches, statement);
    let asked = Instant::now();
    let answered = caller.tenant.request_pool.write(ask).await;
    caller.tenant.event_tail.note_write();
    note(caller, context, check, asked, answered.is_ok());
    answered
}

/// Notes the time of an exchange, and what any answer means: the tenant's database is there, the key was used, and the catalog
/// fits where this was the `check` to ask.
pub(crate) fn note(
    caller: &Caller,
    context: &KeyContext,
    check: Option<FreshnessCheck>,
    asked: Instant,
    is_answered: bool,
) {
    caller.trace.note_exchange(&caller.tenant, asked.elapsed());
    if !is_answered {
        return;
    }
    caller.tenant.note_availability(true, "");
    caller.tenant.last_used.note(&context.last_used, Instant::now());
    if let Some(check) = check {
        context.snapshot.confirm(check);
    }
}
