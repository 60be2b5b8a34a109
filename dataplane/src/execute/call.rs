//! A call of a function or a procedure, from what was compiled to what it gave. A call may have run whatever becomes of its
//! answer, so that only what PostgreSQL has refused before it ran is asked again.

use std::sync::Arc;
use std::time::Instant;

use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::{Call, CallFailure, Cause, Failure};
use rowgate_sql::compile::CompiledCall;
use rowgate_sql::rest;
use rowgate_sql::shape::Shape;
use rowgate_sql::text::Sql;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::problem::problem_of;
use crate::execute::retry::{RetryReason, note, question};
use crate::execute::wording::Wording;

/// One try. What it gives is rows: objects joined by commas.
pub(crate) async fn attempt(
    caller: &Caller,
    context: &KeyContext,
    wording: &Wording,
    compiled: &CompiledCall,
) -> Result<Vec<u8>, RetryReason> {
    let mut nothing = Sql::new();
    nothing.lit("select");
    let no_rows = Shape { columns: Vec::new(), position: Vec::new(), count: None };
    let (check, freshness) = question(caller, context, true, (nothing, Arc::new(no_rows)));
    let catalog = &context.snapshot.catalog;
    let call = Call {
        key: context.key.id.clone(),
        role: context.key.role.clone(),
        generation: catalog.generation,
        statement_timeout_ms: catalog.limits.statement_timeout_ms,
        sql: compiled.sql.clone(),
        shape: compiled.shape.clone(),
        keeps_rows: compiled.keeps_rows,
    };
    let asked = Instant::now();
    let answered = caller.tenant.calls.call(check, call).await;
    caller.tenant.event_tail.note_write();
    note(caller, context, freshness, asked, answered.is_ok());
    let outcome = answered.map_err(|failure| refused(caller, context, wording, compiled, failure))?;
    let _first = caller.trace.rows.set(outcome.n_rows);
    Ok(outcome.json)
}

/// The problem that a failure becomes. What is not final has not run.
fn refused(
    caller: &Caller,
    context: &KeyContext,
    wording: &Wording,
    compiled: &CompiledCall,
    failure: CallFailure,
) -> RetryReason {
    let final_problem = |code, message: &str| RetryReason::Final(Problem::new(code, message));
    match failure {
        // The look-up that follows finds out whether it is dead, or has another role by now.
        CallFailure::Any(Failure::DeadKey) => {
            context.snapshot.forget(&caller.credential);
            RetryReason::Doubtful(Problem::unavailable())
        }
        CallFailure::NoLogin(cause) => {
            tracing::debug!(tenant = %caller.tenant.slug, cause, "the role of a key may not log in");
            RetryReason::Doubtful(Problem::unavailable())
        }
        CallFailure::Any(Failure::Ended) => {
            context.snapshot.forget(&caller.credential);
            RetryReason::Final(Problem::unauthorized())
        }
        CallFailure::Raised(text) => RetryReason::Final(Problem::new(Code::ProcedureError, text)),
        CallFailure::Routine(cause) if cause.sqlstate.as_deref() == Some("42501") => final_problem(
            Code::Forbidden,
            "a grant, or a policy of a table, does not allow this API key what the procedure does; what it committed before stays committed",
        ),
        CallFailure::Routine(cause) if cause.sqlstate.as_deref() == Some("DL409") => final_problem(
            Code::StaleRow,
            "the version of a row that the procedure changes is not the one it was given; read the row again and call \
             the procedure with the new version; what it committed before stays committed",
        ),
        CallFailure::Routine(cause) => {
            // Its words may hold values of rows and of the request.
            caller.trace.fault("a routine failed", cause.sqlstate.as_deref().unwrap_or_default());
            final_problem(
                Code::ProcedureError,
                "the procedure failed with an error that is not shown to callers; what it committed before stays committed",
            )
        }
        CallFailure::Violation(cause) => RetryReason::Final(violation(&cause)),
        CallFailure::Conflict(_) => final_problem(
            Code::SerializationFailure,
            "the procedure conflicted with a concurrent transaction, and what it had not committed was rolled back; call it again",
        ),
        CallFailure::Any(Failure::TooLong) => final_problem(
            Code::TooLarge,
            "the procedure returned more than 32 MiB and was canceled, and what it had not committed was rolled back; return less",
        ),
        CallFailure::Any(Failure::Timeout) => final_problem(
            Code::StatementTimeout,
            "the procedure exceeded the tenant's statement timeout and was canceled; what it committed before stays committed",
        ),
        CallFailure::Lost(cause) => {
            caller.trace.fault("the answer of a call was lost", &cause);
            final_problem(
                Code::Unavailable,
                "the tenant's database did not answer; the procedure may have run; check before calling it again",
            )
        }
        CallFailure::Any(failure) => {
            problem_of(caller, context, wording, &compiled.entity, failure, |parameter| {
                rest::problem::invalid_argument(compiled, parameter)
            })
        }
    }
}

/// Which rule it was, without a word of the database's own.
fn violation(cause: &Cause) -> Problem {
    let (code, what) = match cause.sqlstate.as_deref() {
        Some("23505") => (Code::UniqueViolation, "a row with these values of a unique field already exists"),
        Some("23503" | "23001") => (
            Code::ForeignKeyViolation,
            "a row that another row refers to does not exist, or is still referred to",
        ),
        _ => (Code::ConstraintViolation, "a constraint of a table, or of a type, forbids a value"),
    };
    Problem::new(code, format!("the procedure failed: {what}; what it committed before stays committed"))
}
