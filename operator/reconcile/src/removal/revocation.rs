//! Revoking where a pass stopped early or no Tenant is left: nothing that is wrong may keep a key alive.

use std::time::Duration;

use rowgate_pg::connect::session;
use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::{leader, tenants};
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::keys;
use tokio::time::timeout;

use crate::apply::Logins;
use crate::apply::connection_cache::ConnectionCache;

/// Code of the tenant's may run in it, and never end.
const REVOCATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Revokes the keys of a tenant whose ApiKey is none of `uids`, and says how many that were. `epoch`: the tenant's fence,
/// claimed here if it is `None`. A database that was never finished, or that was dropped, has no keys; one that does not
/// end it within [`REVOCATION_TIMEOUT`] is given up.
pub(crate) async fn revoke_others(
    installation: &Installation,
    connections: &ConnectionCache,
    lead: i64,
    epoch: &mut Option<i64>,
    record: &tenants::Record,
    uids: &[String],
) -> Result<u64, PgError> {
    let mut logins = Logins::new(installation, connections, lead, &record.id, &record.database);
    let revoked = timeout(REVOCATION_TIMEOUT, revoke(installation, lead, epoch, &mut logins, uids)).await;
    let Ok(revoked) = revoked else {
        // dropped with a statement under way; to close it would wait for that
        let reason = format!("no answer within {} s", REVOCATION_TIMEOUT.as_secs());
        return Err(PgError::Unavailable { reason, source: None });
    };
    logins.close().await;
    match revoked {
        Err(error) if is_absent(&error, record.phase) => Ok(0),
        other => other,
    }
}

async fn revoke(
    installation: &Installation,
    lead: i64,
    epoch: &mut Option<i64>,
    logins: &mut Logins<'_>,
    uids: &[String],
) -> Result<u64, PgError> {
    let records = logins.records().await?;
    let claimed = match *epoch {
        Some(epoch) => Ok(epoch),
        None => claim(installation, lead, records).await.inspect(|claimed| *epoch = Some(*claimed)),
    };
    let revoked = match claimed {
        Ok(epoch) => keys::revoke_others(records, uids, Some(epoch)).await,
        Err(error) => Err(error),
    };
    match revoked {
        Err(PgError::Fenced { .. }) => {}
        Err(error) if error.is_raised() => {}
        other => return other,
    }
    // another reconciler has taken over, or the tenant has closed its own fence, which must not keep a key alive
    let mut operator = session::connect(&installation.operator()).await?;
    let fence = leader::fence(&mut operator, lead).await?;
    let n_revoked = keys::revoke_others(records, uids, None).await?;
    fence.rollback().await?;
    Ok(n_revoked)
}

/// Claims the fence of a tenant's database, while no other reconciler can take over.
async fn claim(
    installation: &Installation,
    lead: i64,
    records: &mut sqlx::PgConnection,
) -> Result<i64, PgError> {
    let mut operator = session::connect(&installation.operator()).await?;
    let fence = leader::fence(&mut operator, lead).await?;
    let epoch = tenants::claim_epoch(records).await?;
    fence.rollback().await?;
    Ok(epoch)
}

/// No such database, no such role to log in with, or nothing of ours inside. A database that was never finished may
/// belong to another role, and then it is closed to us.
fn is_absent(error: &PgError, phase: tenants::Phase) -> bool {
    match error.code() {
        Some("3D000" | "42704" | "42P01" | "3F000") => true,
        Some("42501") => phase == tenants::Phase::Creating,
        _ => false,
    }
}
