//! A failure of the wire as a problem for the caller, and as text for the log.

use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::{Cause, Failure};
use rowgate_sql::catalog::Entity;
use rowgate_sql::rest;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::retry::RetryReason;
use crate::execute::wording::Wording;

/// The problem that the failure of a read becomes. What PostgreSQL said goes to the log, where it is a fault of ours.
/// `invalid_value` says what is wrong with the value of a parameter, where it is one of the request.
pub(crate) fn problem_of_failure(
    caller: &Caller,
    context: &KeyContext,
    wording: &Wording,
    failure: Failure,
    invalid_value: impl FnOnce(usize) -> Option<Problem>,
) -> RetryReason {
    let trace = &caller.trace;
    match failure {
        // It was dead, or died while the statement ran.
        Failure::DeadKey | Failure::Ended => {
            context.snapshot.forget(&caller.credential);
            RetryReason::Final(Problem::unauthorized())
        }
        Failure::WrongRole(_) => RetryReason::Doubtful(Problem::unavailable()),
        // A grant that went away: what is not granted is not there.
        Failure::Denied(_) => RetryReason::Denied(Problem::entity_not_found()),
        Failure::Invalid(cause) if cause.is_shortage() => {
            RetryReason::Final(Problem::new(Code::TooLarge, wording.too_much_memory))
        }
        Failure::Invalid(cause) => {
            let what = "a value does not fit its column, a computation overflows or divides by zero, or two columns \
                        have collations that cannot be compared; compare with values of the column's type";
            let problem = cause
                .parameter
                .and_then(invalid_value)
                .unwrap_or_else(|| Problem::new(Code::InvalidValue, what));
            RetryReason::Final(match cause.sqlstate.as_deref() {
                Some("54001") => problem.detail("it is nested deeper than PostgreSQL can parse"),
                _ => problem,
            })
        }
        Failure::Changed(cause) => {
            trace.fault("the tables differ from the catalog", &text(&cause));
            RetryReason::Changed(Problem::unavailable())
        }
        Failure::Timeout => RetryReason::Final(Problem::new(
            Code::StatementTimeout,
            "the query exceeded the tenant's statement timeout; ask for fewer rows, or filter by an indexed column",
        )),
        Failure::Busy(cause) => {
            tracing::debug!(tenant = %caller.tenant.slug, cause, "a request was refused");
            RetryReason::Final(Problem::busy())
        }
        Failure::Unavailable(cause) | Failure::NoConnection(cause) => {
            caller.tenant.note_availability(false, &cause);
            RetryReason::Final(Problem::unavailable())
        }
        Failure::TooLong => RetryReason::Final(Problem::new(Code::TooLarge, wording.long_row)),
        // what is cut is asked for again, one by one
        Failure::ListsCut => {
            trace.fault("the database answered with an unexpected error", &failure.to_string());
            RetryReason::Final(Problem::internal())
        }
        Failure::Internal(cause) => {
            trace.fault("the database answered with an unexpected error", &text(&cause));
            RetryReason::Final(Problem::internal())
        }
    }
}

/// As [`problem_of_failure`], of what became of a statement about `entity`. One that the catalog gives the key and the database does
/// not is being replaced, and comes back; one that neither gives looks like one that does not exist.
pub(crate) fn problem_of(
    caller: &Caller,
    context: &KeyContext,
    wording: &Wording,
    entity: &Entity,
    failure: Failure,
    invalid_value: impl FnOnce(usize) -> Option<Problem>,
) -> RetryReason {
    match problem_of_failure(caller, context, wording, failure, invalid_value) {
        RetryReason::Denied(_) => {
            let scope = context.snapshot.scope(&context.key);
            RetryReason::Denied(match scope.entities.contains_key(&entity.name) {
                true => Problem::unavailable(),
                false => rest::not_found(&context.snapshot.catalog, &scope, entity.name.as_str()),
            })
        }
        miss => miss,
    }
}

/// What the log may hold of a failure after the beginning of its answer was sent.
pub(crate) fn cause(failure: &Failure) -> String {
    match failure {
        Failure::Denied(cause)
        | Failure::Invalid(cause)
        | Failure::Changed(cause)
        | Failure::Internal(cause) => text(cause),
        Failure::Unavailable(text) | Failure::NoConnection(text) | Failure::Busy(text) => text.clone(),
        Failure::DeadKey
        | Failure::WrongRole(_)
        | Failure::Timeout
        | Failure::Ended
        | Failure::TooLong
        | Failure::ListsCut => failure.to_string(),
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
