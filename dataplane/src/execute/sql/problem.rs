//! What a SELECT's failure means for its caller, in our own words: PostgreSQL's may show names and values that the key may not see.

use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::{Failure, QueryFailure, QueryFault, Refused};
use rowgate_sql::user_select::UserSelect;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::problem::{cause as cause_of, problem_of_failure};
use crate::execute::retry::RetryReason;
use crate::execute::wording::Wording;

/// As many columns of a table are listed.
const MAX_LISTED: usize = 60;

pub(crate) fn of(
    caller: &Caller,
    context: &KeyContext,
    (select, wording): (&UserSelect, &Wording),
    failure: QueryFailure,
) -> RetryReason {
    match failure {
        QueryFailure::Declined(problem) => RetryReason::Final(*problem),
        // The look-up that follows finds out whether it is dead, or has another role by now.
        QueryFailure::NoLogin(cause) => {
            tracing::debug!(tenant = %caller.tenant.slug, cause, "the role of a key may not log in");
            RetryReason::Doubtful(Problem::unavailable())
        }
        QueryFailure::Any(Failure::DeadKey) => {
            context.snapshot.forget(&caller.credential);
            RetryReason::Doubtful(Problem::unavailable())
        }
        QueryFailure::Any(failure) => problem_of_failure(caller, context, wording, failure, |_| None),
        QueryFailure::Refused(refused) => of_refused(caller, context, (select, wording), &refused),
    }
}

fn of_refused(
    caller: &Caller,
    context: &KeyContext,
    (select, wording): (&UserSelect, &Wording),
    refused: &Refused,
) -> RetryReason {
    let sqlstate = refused.cause.sqlstate.as_deref();
    tracing::debug!(tenant = %caller.tenant.slug, sqlstate, why = ?refused.why, "a query is refused");
    let invalid = |what: &str| Problem::new(Code::InvalidSql, what);
    let problem = match refused.why {
        // a column that is new, or a grant that is on its way, or one that went away
        QueryFault::Unfit => return RetryReason::Denied(unfit(context, select)),
        QueryFault::Syntax => invalid("PostgreSQL cannot read the query; write one SELECT in its syntax"),
        QueryFault::Result => invalid("the query gives no columns; name at least one after SELECT"),
        QueryFault::Writes => invalid("the query would write; it may only read"),
        QueryFault::Value => invalid_value(select, refused),
        QueryFault::Resources => Problem::new(Code::TooLarge, wording.too_much_memory),
        QueryFault::Raised => Problem::new(
            Code::ProcedureError,
            "a function, a view or a policy that the query uses failed with an error that is not shown to callers",
        ),
    };
    RetryReason::Final(problem)
}

/// Names, rights and types are one refusal. Only names that the key may read stand in it.
pub(super) fn unfit(context: &KeyContext, select: &UserSelect) -> Problem {
    if let Some(relation) = context.unreadable(select) {
        let what =
            format!("the query names {relation}, which does not exist or which this API key may not read");
        let problem = Problem::new(Code::InvalidSql, what);
        let tables = context.readable_tables();
        return match tables.is_empty() {
            true => problem,
            false => problem.detail(format!("the tables that it may read are {}", tables.join(", "))),
        };
    }
    let what = "the query names a column that does not exist or that this API key may not read, or the types of values do not fit where they stand";
    let problem = Problem::new(Code::InvalidSql, what);
    context.readable_columns(select).into_iter().fold(problem, |problem, (table, columns)| {
        let n_more = columns.len().saturating_sub(MAX_LISTED);
        let listed = columns.into_iter().take(MAX_LISTED).collect::<Vec<_>>().join(", ");
        let more = if 0 < n_more { format!(" and {n_more} more") } else { String::new() };
        problem.detail(format!("{table} has the columns {listed}{more}"))
    })
}

fn invalid_value(select: &UserSelect, refused: &Refused) -> Problem {
    let parameter = refused.cause.parameter.and_then(|n| select.parameters.get(n.checked_sub(1)?));
    let what = match parameter {
        Some(name) => format!("the value of the parameter {name:?} does not fit its type or is out of range"),
        None => "a value does not fit its type, a computation overflows or divides by zero, or several rows stand where one is \
                 expected"
            .to_owned(),
    };
    Problem::new(Code::InvalidValue, what)
}

/// What the log may hold of a failure after the beginning of its answer was sent.
pub(super) fn cause(failure: &QueryFailure) -> String {
    match failure {
        QueryFailure::Any(failure) => cause_of(failure),
        QueryFailure::Refused(Refused { why, cause, .. }) => {
            format!("{why:?} {}", cause.sqlstate.as_deref().unwrap_or_default())
        }
        QueryFailure::NoLogin(_) | QueryFailure::Declined(_) => failure.to_string(),
    }
}
