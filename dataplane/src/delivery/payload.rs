//! Payload queries: SQL of a subscription that makes what is sent of an event, run as the key that owns the subscription.

use std::sync::Arc;
use std::time::Duration;

use rowgate_core::secret::Credential;
use rowgate_pg::wire::{Failure, Query, QueryFailure, QueryFault, Refused, Values};
use rowgate_sql::text::Bind;

use crate::auth::key_context::KeyContext;
use crate::tenants::tenant::Tenant;

/// How long a payload query may take: a batch of 100 waits for each of its own.
const LIMIT: Duration = Duration::from_secs(5);
/// What is sent in the place of one event's `data`, in bytes.
const MAX_BYTES: usize = 256 << 10;

/// A payload query in PostgreSQL's words, with the values of its variables.
#[derive(Clone)]
pub struct PayloadQuery {
    pub text: Arc<str>,
    pub binds: Vec<Bind>,
}

/// Why a payload query gave nothing. What is displayed is for the owner of the subscription.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// The owner key is revoked, expired or gone.
    #[error("the API key that owns the subscription is not valid any more")]
    OwnerInactive,
    /// The key has another role than it is known with, or may not log in yet: find the key again.
    #[error("the API key that owns the subscription has changed; the delivery is tried again")]
    OwnerChanged,
    /// The query itself, or the event's values, are why.
    #[error("{0}")]
    Query(&'static str),
    /// The grammar fails at this character of [`PayloadQuery::text`], from 1.
    #[error("the payload query is not valid SQL at character {0}")]
    Syntax(usize),
    /// The database does not answer, or too many ask it; the text is for the log.
    #[error("the database is not available for the payload query; the delivery is tried again")]
    Unavailable(String),
}

/// What the query makes of one event; `None`: nothing, so that the event's own data is sent.
pub async fn run(
    tenant: &Arc<Tenant>,
    context: &KeyContext,
    query: &PayloadQuery,
) -> Result<Option<String>, PayloadError> {
    let outcome = tenant.queries.run(check_of_owner(context), query_of(context, query)).await;
    let json = outcome.map_err(|failure| error(tenant, failure))?.json;
    let text = String::from_utf8(json)
        .map_err(|_| PayloadError::Unavailable("PostgreSQL sent text that is not UTF-8".to_owned()))?;
    Ok((!text.is_empty()).then_some(text))
}

/// Whether the query could run as this key: PostgreSQL parses and plans it, and reads no row.
pub async fn check(
    tenant: &Arc<Tenant>,
    context: &KeyContext,
    query: &PayloadQuery,
) -> Result<(), PayloadError> {
    let prepared = tenant.queries.prepare(check_of_owner(context), query_of(context, query)).await;
    prepared.map(|_| ()).map_err(|failure| error(tenant, failure))
}

/// The key is asked for by its id: which of its secrets lives does not matter.
fn check_of_owner(context: &KeyContext) -> rowgate_pg::wire::Ask {
    context.check(&Credential::Owner(context.key.id.clone()))
}

fn query_of(context: &KeyContext, query: &PayloadQuery) -> Query {
    let PayloadQuery { text, binds } = query.clone();
    Query { limit: LIMIT, values: Values::One, max_bytes: MAX_BYTES, ..context.query(text, binds) }
}

/// In our own words, without one of the database's.
fn error(tenant: &Tenant, failure: QueryFailure) -> PayloadError {
    let failure = match failure {
        QueryFailure::Refused(refused) => return of_refused(tenant, &refused),
        QueryFailure::NoLogin(_) => return PayloadError::OwnerChanged,
        QueryFailure::Any(failure) => failure,
    };
    match failure {
        Failure::DeadKey | Failure::Ended => PayloadError::OwnerInactive,
        Failure::WrongRole(_) | Failure::Changed(_) => PayloadError::OwnerChanged,
        Failure::Timeout => PayloadError::Query("the payload query took longer than 5 s and was canceled"),
        Failure::TooLong => PayloadError::Query("the payload query gives more than 256 KiB"),
        Failure::Busy(cause) | Failure::Unavailable(cause) | Failure::NoConnection(cause) => {
            PayloadError::Unavailable(cause)
        }
        Failure::Denied(cause) | Failure::Invalid(cause) | Failure::Internal(cause) => {
            tracing::warn!(tenant = %tenant.slug, sqlstate = cause.sqlstate, "a payload query failed unexpectedly");
            PayloadError::Query("the payload query failed")
        }
        Failure::ListsCut => PayloadError::Query("the payload query failed"),
    }
}

fn of_refused(tenant: &Tenant, refused: &Refused) -> PayloadError {
    // Its message may hold values of rows.
    tracing::debug!(tenant = %tenant.slug, sqlstate = refused.cause.sqlstate, why = ?refused.why, "a payload query is refused");
    PayloadError::Query(match (refused.why, refused.position) {
        (QueryFault::Syntax, Some(position)) => return PayloadError::Syntax(position),
        (QueryFault::Syntax, None) => "the payload query is not one statement of SQL",
        (QueryFault::Unfit, _) => {
            "the payload query names a table, column or function that does not exist or that the owner key may not use, \
             or what it names does not fit where it stands"
        }
        (QueryFault::Result, _) => "the payload query does not give one row with one column of JSON",
        (QueryFault::Writes, _) => "the payload query would write; it may only read",
        (QueryFault::Value, _) => {
            "a value of the payload query does not fit its type or a range, or something is divided by zero"
        }
        (QueryFault::Resources, _) => {
            "the payload query needs more memory than it may use, or is too complex"
        }
        (QueryFault::Raised, _) => "a function or a policy that the payload query uses failed",
    })
}
