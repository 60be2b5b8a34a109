//! Payload queries: SQL of a subscription that makes what is sent of an event, run as the key that owns the subscription.

mod of_tables;

use std::sync::Arc;
use std::time::Duration;

use rowgate_core::secret::Credential;
use rowgate_pg::wire::{Ask, Failure, Query, QueryFailure, QueryFault, Refused, Values};
use rowgate_sql::for_json::PayloadQuery;
use rowgate_sql::text::Bind;

use crate::auth::key_context::KeyContext;
use crate::tenants::tenant::Tenant;

pub(crate) use of_tables::PayloadQueries;

/// How long a payload query may take: a batch of 100 waits for each of its own.
const LIMIT: Duration = Duration::from_secs(5);
/// What is sent in the place of one event's `data`, in bytes.
const MAX_BYTES: usize = 256 << 10;

/// `$n` is cast to the type of its variable.
const TEXT: u32 = 25;

/// Why a payload query gave nothing. What is displayed is for the owner of the subscription.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PayloadError {
    /// The owner key is revoked, expired or gone.
    #[error("the API key that owns the subscription is not valid any more")]
    OwnerInactive,
    /// The key has another role than it is known with, or may not log in yet: find the key again.
    #[error("the API key that owns the subscription has changed; the delivery is tried again")]
    OwnerChanged,
    /// The query itself, or the event's values, are why.
    #[error("{0}")]
    Query(String),
    /// The database does not answer, or too many ask it; the text is for the log.
    #[error("the database is not available for the payload query; the delivery is tried again")]
    Unavailable(String),
}

/// What the query makes of one event; `None`: nothing, so that the event's own data is sent. `value` gives the variables, each in
/// the text form of its type.
async fn run(
    tenant: &Arc<Tenant>,
    context: &KeyContext,
    query: &PayloadQuery,
    value: impl Fn(&str) -> Option<String> + Send,
) -> Result<Option<String>, PayloadError> {
    let asked = query_of(context, query, value)?;
    let outcome = tenant.queries.run(check_of_owner(context), asked).await;
    let json = outcome.map_err(|failure| error(tenant, failure))?.json;
    let text = String::from_utf8(json)
        .map_err(|_| PayloadError::Unavailable("PostgreSQL sent text that is not UTF-8".to_owned()))?;
    Ok((!text.is_empty()).then_some(text))
}

/// Whether the query could run as this key: PostgreSQL parses and plans it, and reads no row.
async fn check(tenant: &Arc<Tenant>, context: &KeyContext, query: &PayloadQuery) -> Result<(), PayloadError> {
    let asked = query_of(context, query, |_| None)?;
    let prepared = tenant.queries.prepare(check_of_owner(context), asked).await;
    prepared.map(|_| ()).map_err(|failure| error(tenant, failure))
}

/// The key is asked for by its id: which of its secrets lives does not matter.
fn check_of_owner(context: &KeyContext) -> Ask {
    context.check(&Credential::Owner(context.key.id.clone()))
}

fn query_of(
    context: &KeyContext,
    query: &PayloadQuery,
    value: impl Fn(&str) -> Option<String>,
) -> Result<Query, PayloadError> {
    if context.names_unguarded(query.select()) {
        let what = "a table of the payload query has its row-level security off, so that nothing reads it";
        return Err(PayloadError::Query(what.to_owned()));
    }
    if let Some(relation) = context.unreadable(query.select()) {
        return Err(PayloadError::Query(format!(
            "the payload query names {relation}, which does not exist or which the owner key may not read"
        )));
    }
    let bind = |name: &String| match value(name) {
        Some(value) => Bind::text(TEXT, value),
        None => Bind { value: None, ..Bind::text(TEXT, "") },
    };
    let binds = query.parameters().iter().map(bind).collect();
    Ok(Query {
        limit: LIMIT,
        max_bytes: MAX_BYTES,
        values: Values::One,
        ..context.query(query.select(), binds)
    })
}

/// In our own words, without one of the database's.
fn error(tenant: &Tenant, failure: QueryFailure) -> PayloadError {
    let failed = |what: &str| PayloadError::Query(what.to_owned());
    let failure = match failure {
        QueryFailure::Refused(refused) => {
            return of_refused(tenant, &refused);
        }
        QueryFailure::NoLogin(_) => return PayloadError::OwnerChanged,
        QueryFailure::Declined(_) => return failed("the payload query failed"),
        QueryFailure::Any(failure) => failure,
    };
    match failure {
        Failure::DeadKey | Failure::Ended => PayloadError::OwnerInactive,
        Failure::WrongRole(_) | Failure::Changed(_) => PayloadError::OwnerChanged,
        Failure::Timeout => failed("the payload query took longer than 5 s and was canceled"),
        Failure::TooLong => failed("the payload query gives more than 256 KiB"),
        Failure::Busy(cause) | Failure::Unavailable(cause) | Failure::NoConnection(cause) => {
            PayloadError::Unavailable(cause)
        }
        Failure::Denied(cause) | Failure::Invalid(cause) | Failure::Internal(cause) => {
            tracing::warn!(tenant = %tenant.slug, sqlstate = cause.sqlstate, "a payload query failed unexpectedly");
            failed("the payload query failed")
        }
        Failure::ListsCut => failed("the payload query failed"),
    }
}

fn of_refused(tenant: &Tenant, refused: &Refused) -> PayloadError {
    // Its message may hold values of rows.
    tracing::debug!(tenant = %tenant.slug, sqlstate = refused.cause.sqlstate, why = ?refused.why, "a payload query is refused");
    let what = match refused.why {
        QueryFault::Unfit => {
            "the payload query names a column that does not exist or that the owner key may not read, or a value's type does \
             not fit where it stands"
        }
        QueryFault::Syntax => "the payload query is not one statement of SQL",
        QueryFault::Result => "the payload query does not give one row with one column of JSON",
        QueryFault::Writes => "the payload query would write; it may only read",
        QueryFault::Value => {
            "a value of the payload query does not fit its type or a range, or several rows stand where one is expected"
        }
        QueryFault::Resources => "the payload query needs more memory than it may use, or is too complex",
        QueryFault::Raised => "a function or a policy that the payload query uses failed",
    };
    PayloadError::Query(what.to_owned())
}
