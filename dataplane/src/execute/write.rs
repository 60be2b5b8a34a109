//! A write from key to effect. It is asked again only where PostgreSQL has said that nothing was done.

pub mod problem;

use std::sync::Arc;

use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::{Failure, WriteFailure, WriteOutcome};
use rowgate_sql::catalog::Entity;
use rowgate_sql::compile::{self, CompiledWrite, Effect, Verb};
use rowgate_sql::query::{Delete, Guard, NoRowReason, Upsert};
use rowgate_sql::rest;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::problem::problem_of;
use crate::execute::retry::{self, Attempt, RetryReason};
use crate::execute::row_version::RowVersion;
use crate::execute::value_diagnosis;
use crate::execute::wording::Wording;
use problem::{about, is_key, unwritable, violation};

/// What was written, and of what.
pub struct Written {
    pub entity: Arc<Entity>,
    /// How many rows were made, changed or deleted.
    pub n_affected: u64,
    /// What became of the one row of an upsert, or of a DELETE that has to look for it. `None`: it was not reached, and
    /// `no_row` says what that means.
    pub effect: Option<Effect>,
    pub no_row: NoRowReason,
    /// The rows that were read back: objects joined by commas.
    pub json: Vec<u8>,
    /// They were more than an answer holds, so that `json` is empty.
    pub is_left_out: bool,
    /// Of the one row that was read back, where it keeps its version.
    pub tagged: Option<RowVersion>,
}

/// Takes memory for a statement of so many bytes that is made of a request's body.
pub type Reserve<'a> = dyn Fn(usize) -> Result<(), Problem> + Sync + 'a;

/// How often a write is attempted while its row is created or deleted concurrently.
const MAX_ATTEMPTS: usize = 3;

/// Changes the row that `make` resolves, or makes it, and says whether it was made. What is made of the body is held from the same
/// memory as the body itself.
pub async fn upsert(
    caller: &Caller,
    wording: &Wording,
    reserve: &Reserve<'_>,
    make: impl Fn(&KeyContext) -> Result<Upsert, Problem> + Send + Sync,
) -> Result<(Written, bool), Problem> {
    let mut n_attempts = 0;
    loop {
        n_attempts += 1;
        let written = run_with_body(caller, wording, reserve, |context, tells_apart| {
            let upsert = make(context)?;
            let tells_apart = tells_apart || 1 < n_attempts;
            Ok(compile::upsert(&if tells_apart { upsert.told_apart() } else { upsert }))
        });
        let written = written.await?;
        return Err(match written.effect {
            Some(Effect::Made) => return Ok((written, true)),
            Some(Effect::Changed | Effect::Untrue(_)) => return Ok((written, false)),
            Some(Effect::PassedOver) => problem::passed_over(),
            None => match written.no_row {
                NoRowReason::Again if n_attempts < MAX_ATTEMPTS => continue,
                NoRowReason::Again => problem::unreachable_row(&written.entity),
                NoRowReason::NotFound => problem::row_not_found(),
                NoRowReason::PassedOver => problem::passed_over(),
                NoRowReason::Taken => Problem::new(Code::PreconditionFailed, wording.taken),
                no_row @ (NoRowReason::Stale | NoRowReason::Unmatched) => {
                    problem::stale(no_row, &written.entity, wording)
                }
            },
        });
    }
}

/// Deletes the row that `make` resolves.
pub async fn delete(
    caller: &Caller,
    wording: &Wording,
    make: impl Fn(&KeyContext) -> Result<Delete, Problem> + Send + Sync,
) -> Result<(), Problem> {
    let written = run(caller, wording, |context, tells_apart| {
        let delete = make(context)?;
        Ok(compile::delete(&if tells_apart { delete.told_apart() } else { delete }))
    });
    let written = written.await?;
    match (written.effect, written.n_affected) {
        (Some(Effect::PassedOver), _) => Err(problem::kept(&written.entity)),
        (_, 0) => Err(problem::row_not_found()),
        _ => Ok(()),
    }
}

/// Runs what `make` compiles, at most once to its end, in the name of the caller's key. As with reads no problem is answered to
/// a key before the database has said that it lives. `make` is asked a second time, with `true`, where nothing was done and
/// policies may be the reason: for the same write, in the form that shows it (`told_apart`).
async fn run(
    caller: &Caller,
    wording: &Wording,
    make: impl Fn(&KeyContext, bool) -> Result<CompiledWrite, Problem> + Send + Sync,
) -> Result<Written, Problem> {
    let written = async {
        let context = caller.authenticate().await?;
        retry::run(caller, context, &Write { wording, reserve: None, make }).await
    };
    written.await.map_err(Problem::of_nothing_written)
}

/// As [`run`], of a request that was counted when its body was waited for. What is made of the body is held from the same
/// memory as the body itself.
async fn run_with_body(
    caller: &Caller,
    wording: &Wording,
    reserve: &Reserve<'_>,
    make: impl Fn(&KeyContext, bool) -> Result<CompiledWrite, Problem> + Send + Sync,
) -> Result<Written, Problem> {
    let written = async {
        let context = caller.reauthenticate().await?;
        retry::run(caller, context, &Write { wording, reserve: Some(reserve), make }).await
    };
    written.await.map_err(Problem::of_nothing_written)
}

struct Write<'a, F> {
    wording: &'a Wording,
    reserve: Option<&'a Reserve<'a>>,
    make: F,
}

impl<F: Fn(&KeyContext, bool) -> Result<CompiledWrite, Problem> + Send + Sync> Attempt for Write<'_, F> {
    type Answer = Written;

    async fn attempt(&self, caller: &Caller, context: &KeyContext, _: bool) -> Result<Written, RetryReason> {
        let make = |tells_apart| {
            let compiled = (self.make)(context, tells_apart).map_err(RetryReason::Refused)?;
            self.reserve
                .map_or(Ok(()), |reserve| reserve(compiled.sql.n_bytes()))
                .map_err(RetryReason::Doubtful)?;
            Ok(compiled)
        };
        let compiled: CompiledWrite = make(false)?;
        let answered = asked(caller, context, &compiled, true).await;
        if compiled.guard == Guard::Unseen && is_in_doubt(&compiled, &answered) {
            let compiled = make(true)?;
            let answered = asked(caller, context, &compiled, false).await;
            return written(caller, context, self.wording, compiled, answered).await;
        }
        written(caller, context, self.wording, compiled, answered).await
    }
}

pub(crate) async fn asked(
    caller: &Caller,
    context: &KeyContext,
    compiled: &CompiledWrite,
    watches: bool,
) -> Result<WriteOutcome, WriteFailure> {
    let statement = (compiled.sql.clone(), compiled.shape.clone());
    retry::write(caller, context, watches, statement).await
}

/// What an outcome means.
pub(crate) async fn written(
    caller: &Caller,
    context: &KeyContext,
    wording: &Wording,
    compiled: CompiledWrite,
    answered: Result<WriteOutcome, WriteFailure>,
) -> Result<Written, RetryReason> {
    let outcome = match answered {
        Ok(outcome) => outcome,
        Err(failure) => {
            let named = value_diagnosis::diagnose(caller, context, &compiled, &failure).await;
            return Err(named
                .map_or_else(|| refused(caller, context, wording, &compiled, failure), RetryReason::Final));
        }
    };
    let effect = outcome.effect.and_then(Effect::of);
    match effect {
        Some(Effect::PassedOver) if compiled.guard == Guard::Seen => {
            return Err(RetryReason::Final(problem::kept_by_policy(&compiled)));
        }
        Some(Effect::Untrue(at)) => {
            if let Some(check) = compiled.checks.get(at) {
                return Err(RetryReason::Final((wording.untrue)(&compiled.entity, check)));
            }
        }
        _ => {}
    }
    let WriteOutcome { n_affected, json, n_rows, marks, is_left_out, .. } = outcome;
    let _first = caller.trace.rows.set(n_rows);
    let one = (compiled.is_tagged && n_rows == 1).then_some(marks.as_ref()).flatten();
    let tagged = RowVersion::new(context, &compiled.entity, &compiled.shape, one);
    let CompiledWrite { entity, no_row, .. } = compiled;
    Ok(Written { entity, n_affected, effect, no_row, json, is_left_out, tagged })
}

/// Whether nothing was done, perhaps for a policy that keeps the row from being changed: then it is not found, and where it
/// may be made instead, that may fail by whatever rule of the table. The second attempt shows it then.
fn is_in_doubt(compiled: &CompiledWrite, answered: &Result<WriteOutcome, WriteFailure>) -> bool {
    match answered {
        // nothing is tried again that a trigger has passed over
        Ok(outcome) => {
            outcome.n_affected == 0
                && !matches!(compiled.no_row, NoRowReason::Again | NoRowReason::PassedOver)
        }
        Err(WriteFailure::Any(Failure::Denied(_)) | WriteFailure::Violation(_)) => {
            compiled.verb == Verb::Upsert
        }
        Err(_) => false,
    }
}

/// The problem that a failure becomes.
fn refused(
    caller: &Caller,
    context: &KeyContext,
    wording: &Wording,
    compiled: &CompiledWrite,
    failure: WriteFailure,
) -> RetryReason {
    match failure {
        WriteFailure::Violation(cause) => {
            let problem =
                about(violation(&cause, context, compiled, wording), &cause, context, &compiled.entity);
            let is_own_key = compiled.may_race && is_key(&cause, &compiled.entity);
            let problem = if is_own_key { problem::unreachable_row(&compiled.entity) } else { problem };
            match compiled.may_race && cause.sqlstate.as_deref() == Some("23505") {
                true => RetryReason::Raced(problem),
                false => RetryReason::Final(problem),
            }
        }
        WriteFailure::Conflict(_) => RetryReason::Final(Problem::new(
            Code::SerializationFailure,
            "the write conflicted with a concurrent one, and nothing was written; retry",
        )),
        WriteFailure::Unwritable(cause) => RetryReason::Final(unwritable(&cause)),
        WriteFailure::Any(failure) => unanswered(caller, context, wording, compiled, failure),
    }
}

/// What may happen to any exchange, and means something else where a write was sent.
fn unanswered(
    caller: &Caller,
    context: &KeyContext,
    wording: &Wording,
    compiled: &CompiledWrite,
    failure: Failure,
) -> RetryReason {
    match failure {
        // Dead, or of another role than the statement was made for: the look-up that follows finds out.
        Failure::DeadKey => {
            context.snapshot.forget(&caller.credential);
            RetryReason::Doubtful(Problem::unavailable())
        }
        // PostgreSQL looks at the grants before it runs anything: a table that was just created has none yet
        Failure::Denied(cause) if cause.is_of_grants && !cause.is_inside => {
            RetryReason::Denied(Problem::unavailable().of_nothing_written())
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
        Failure::TooLong => RetryReason::Final(Problem::new(Code::TooLarge, wording.long_written_row)),
        failure => problem_of(caller, context, wording, &compiled.entity, failure, |parameter| {
            rest::problem::invalid_value(
                compiled,
                parameter,
                value_diagnosis::may_read(context, &compiled.entity),
            )
        }),
    }
}
