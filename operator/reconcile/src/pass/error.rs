//! Why a pass ended early, and what the status of its Tenant then says.

use rowgate_crds::Reason;
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::locks::{self, Held};

use crate::apply::ApplyError;
use crate::plan::Finding;
use crate::source::SourceError;

/// Why a pass ended early. The Tenant's status says it; the next pass starts again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassError {
    #[error(transparent)]
    Pg(#[from] PgError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("{0}")]
    Moved(String),
    /// For what ends by itself.
    #[error("{0}")]
    Waits(String),
    /// The server that a Secret names does not answer.
    #[error("{0}")]
    Unreachable(String),
    /// What was to be done, and who holds what it needs.
    #[error("{0}: {held}", held = held(.1))]
    Busy(String, Vec<Held>),
    #[error("{1}")]
    Refused(Reason, String),
}

impl From<Finding> for PassError {
    fn from(finding: Finding) -> PassError {
        PassError::Refused(finding.reason, finding.message)
    }
}

impl From<ApplyError> for PassError {
    fn from(error: ApplyError) -> PassError {
        match error {
            ApplyError::Unavailable(error) => PassError::Pg(error),
            moved @ ApplyError::Moved { .. } => PassError::Moved(moved.to_string()),
            ApplyError::Busy { about, holders } => PassError::Busy(about, holders),
            other => {
                let message = format!(
                    "{other}; correct in the database what refuses the statement (every resync retries)"
                );
                PassError::Refused(Reason::StatementRefused, message)
            }
        }
    }
}

/// The message of a tenant that waits for another transaction.
pub(super) fn busy(about: &str, holders: &[Held]) -> String {
    format!(
        "{about}: {held}; Rowgate gives up its place in the queue, so that no other session waits behind it, and retries; end the transactions that hold the lock (pg_locks, pg_stat_activity) to finish sooner",
        held = held(holders)
    )
}

fn held(holders: &[Held]) -> String {
    match holders {
        [] => "another transaction holds a table or a role".to_owned(),
        holders => format!("another transaction holds {}", locks::sentence(holders)),
    }
}

/// The message of a tenant whose database is too large to be read. It is read again as after a change.
pub(super) fn too_large(error: &PgError) -> String {
    format!(
        "{error}; reduce what the tenant's database holds (it is served as it was last read, and every resync retries)"
    )
}
