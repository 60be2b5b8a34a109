//! A write or a call from key to rows. It is asked again only where PostgreSQL has said that nothing was done.

use std::sync::Arc;

use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::{Failure, Mode, Page};
use rowgate_sql::catalog::Entity;
use rowgate_sql::compile::{Compiled, PASSED_OVER, UNTRUE, Verb};
use rowgate_sql::query::{Guard, NoRowReason};
use rowgate_sql::rest;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::problem::problem_of;
use crate::execute::retry::{self, Attempt, RetryReason, ask, compiled};
use crate::execute::row_version::RowVersion;
use crate::execute::write_problem::{self, about, is_key, unwritable, violation};
use crate::execute::{call, value_diagnosis};

/// What was written, and of what.
pub struct Written {
    /// Its rows, where they are read back; `n_affected` is known.
    pub page: Page,
    pub entity: Arc<Entity>,
    /// What it means where no row was written.
    pub no_row: NoRowReason,
    /// Of the one row that was read back, where it keeps its version.
    pub tagged: Option<RowVersion>,
}

/// Takes memory for a statement of so many bytes that is made of a request's body.
pub type Reserve<'a> = dyn Fn(usize) -> Result<(), Problem> + Sync + 'a;

/// Runs what `make` compiles, at most once to its end, in the name of the caller's key. As with reads no problem is answered to
/// a key before the database has said that it lives. `make` is asked a second time, with `true`, where nothing was done and
/// policies may be the reason: for the same write, in the form that shows it (`told_apart`).
pub async fn run(
    caller: &Caller,
    make: impl Fn(&KeyContext, bool) -> Result<Compiled, Problem> + Send + Sync,
) -> Result<Written, Problem> {
    retry::run(caller, &Write { reserve: None, make }).await.map_err(Problem::of_nothing_written)
}

/// As [`run`], of a request that was counted when its body was waited for. What is made of the body is held from the same
/// memory as the body itself.
pub async fn run_with_body(
    caller: &Caller,
    reserve: &Reserve<'_>,
    make: impl Fn(&KeyContext, bool) -> Result<Compiled, Problem> + Send + Sync,
) -> Result<Written, Problem> {
    let written = async {
        let context = caller.reauthenticate().await?;
        retry::run_admitted(caller, context, &Write { reserve: Some(reserve), make }).await
    };
    written.await.map_err(Problem::of_nothing_written)
}

struct Write<'a, F> {
    reserve: Option<&'a Reserve<'a>>,
    make: F,
}

impl<F> Write<'_, F> {
    /// Takes memory for what was compiled of a body.
    fn reserve(&self, compiled: &Compiled) -> Result<(), RetryReason> {
        let held = self.reserve.map_or(Ok(()), |reserve| reserve(compiled.sql.n_bytes()));
        held.map_err(RetryReason::Doubtful)
    }
}

impl<F: Fn(&KeyContext, bool) -> Result<Compiled, Problem> + Send + Sync> Attempt for Write<'_, F> {
    type Answer = Written;

    async fn attempt(&self, caller: &Caller, context: &KeyContext, _: bool) -> Result<Written, RetryReason> {
        let make = |tells_apart| compiled(caller, context, |context| (self.make)(context, tells_apart));
        let mut compiled = make(false)?;
        self.reserve(&compiled)?;
        if compiled.entity.routine.is_some() {
            return call::attempt(caller, context, &compiled).await;
        }
        let mut answered = done(caller, context, &compiled, true).await;
        if compiled.guard == Guard::Unseen && is_in_doubt(&compiled, &answered) {
            compiled = make(true)?;
            self.reserve(&compiled)?;
            answered = done(caller, context, &compiled, false).await;
        }
        let page = match answered {
            Ok(page) => page,
            Err(failure) => {
                let named = value_diagnosis::diagnose(caller, context, &compiled, &failure).await;
                return Err(
                    named.map_or_else(|| refused(caller, context, &compiled, failure), RetryReason::Final)
                );
            }
        };
        if compiled.guard == Guard::Seen && page.count == Some(PASSED_OVER) {
            return Err(RetryReason::Final(write_problem::kept_by_policy(&compiled)));
        }
        let untrue = page.count.and_then(|count| usize::try_from(count - UNTRUE).ok());
        if let Some(check) = untrue.and_then(|at| compiled.checks.get(at)) {
            return Err(RetryReason::Final(rest::problem::untrue(&compiled.entity, check)));
        }
        let _first = caller.trace.rows.set(page.n_rows);
        let one = (compiled.is_tagged && page.n_rows == 1).then_some(page.last.as_ref()).flatten();
        let tagged = RowVersion::new(context, &compiled.entity, &compiled.shape, one);
        Ok(Written { page, entity: compiled.entity, no_row: compiled.no_row, tagged })
    }
}

async fn done(
    caller: &Caller,
    context: &KeyContext,
    compiled: &Compiled,
    watches: bool,
) -> Result<Page, Failure> {
    let statement = (compiled.sql.clone(), compiled.shape.clone(), compiled.take);
    ask(caller, context, watches, statement, Mode::Write).await
}

/// Whether nothing was done, perhaps for a policy that keeps the row from being changed: then it is not found, and where it
/// may be made instead, that may fail by whatever rule of the table. The second attempt shows it then.
fn is_in_doubt(compiled: &Compiled, answered: &Result<Page, Failure>) -> bool {
    match answered {
        // nothing is tried again that a trigger has passed over
        Ok(page) => {
            page.n_affected == Some(0)
                && !matches!(compiled.no_row, NoRowReason::Again | NoRowReason::PassedOver)
        }
        Err(Failure::Denied(_) | Failure::Violation(_)) => compiled.verb == Verb::Upsert,
        Err(_) => false,
    }
}

/// The problem that a failure becomes.
fn refused(caller: &Caller, context: &KeyContext, compiled: &Compiled, failure: Failure) -> RetryReason {
    match failure {
        // Dead, or of another role than the statement was made for: the look-up that follows finds out.
        Failure::DeadKey => {
            context.snapshot.forget(&caller.credential);
            RetryReason::Doubtful(Problem::unavailable())
        }
        Failure::Denied(_) => RetryReason::Doubtful(Problem::new(
            Code::Forbidden,
            "a policy of the table does not allow this API key to write or to read this row; change its values",
        )),
        Failure::Unavailable(cause) => {
            caller.tenant.note_availability(false, &cause);
            RetryReason::Final(Problem::new(
                Code::Unavailable,
                "the tenant's database did not answer; the write may have been applied; check before retrying",
            ))
        }
        Failure::Timeout => RetryReason::Final(Problem::new(
            Code::StatementTimeout,
            "the write exceeded the tenant's statement timeout and was canceled; check before retrying, with fewer rows",
        )),
        Failure::Violation(cause) => {
            let problem = about(violation(&cause, context, compiled), &cause, context, &compiled.entity);
            let is_own_key = compiled.may_race && is_key(&cause, &compiled.entity);
            let problem = if is_own_key { write_problem::unreachable_row(&compiled.entity) } else { problem };
            match compiled.may_race && cause.sqlstate.as_deref() == Some("23505") {
                true => RetryReason::Raced(problem),
                false => RetryReason::Final(problem),
            }
        }
        Failure::TooLong => RetryReason::Final(Problem::new(
            Code::TooLarge,
            "a row would be longer than 64 MiB as JSON, so nothing was written; send Prefer: return=minimal to write it",
        )),
        Failure::Conflict(_) => RetryReason::Final(Problem::new(
            Code::SerializationFailure,
            "the write conflicted with a concurrent one, and nothing was written; retry",
        )),
        Failure::Unwritable(cause) => RetryReason::Final(unwritable(&cause)),
        failure => problem_of(caller, context, &compiled.entity, failure, |parameter| {
            rest::problem::invalid_value(
                compiled,
                parameter,
                value_diagnosis::may_read(context, &compiled.entity),
            )
        }),
    }
}
