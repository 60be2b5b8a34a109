//! Revoking where a pass stopped early or no Tenant is left: nothing that is wrong may keep a key alive.

use rowgate_pg::failure::PgError;
use rowgate_pg::installation::Installation;
use rowgate_pg::{keys, leader, migrate, session, tenants};

use crate::apply::Logins;
use crate::kept::Kept;
use crate::plan::As;

/// Revokes the keys of a tenant whose ApiKey is none of `uids`, and says how many that were. `epoch`: the tenant's
/// fence, taken here if nobody has. A database that was never finished, or that somebody dropped, has no keys.
pub(crate) async fn revoke_others(
    installation: &Installation,
    kept: &Kept,
    lead: i64,
    epoch: &mut Option<i64>,
    record: &tenants::Record,
    uids: &[String],
) -> Result<u64, PgError> {
    let mut logins = Logins::new(installation, kept, lead, &record.id, &record.database);
    let revoked = revoke(installation, lead, epoch, &mut logins, uids).await;
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
    let owner = logins.get(As::Owner).await?;
    let epoch = match *epoch {
        Some(epoch) => epoch,
        None => *epoch.insert(claim(installation, lead, owner, false).await?),
    };
    keys::revoke_others(owner, uids, epoch).await
}

/// Takes the fence of a tenant's database, while nobody else can take over. `prepare`: schema `dl` is made, or brought up
/// to date, before.
pub(crate) async fn claim(
    installation: &Installation,
    lead: i64,
    owner: &mut sqlx::PgConnection,
    prepare: bool,
) -> Result<i64, PgError> {
    let mut operator = session::connect(&installation.operator()).await?;
    let fence = leader::fence(&mut operator, lead).await?;
    if prepare {
        migrate::tenant(owner).await?;
    }
    let epoch = tenants::claim_epoch(owner).await?;
    fence.rollback().await?;
    Ok(epoch)
}

/// No such database, no such role to log in with, or nothing of ours inside. What was never finished may also be somebody
/// else's, and then it is closed to us.
fn is_absent(error: &PgError, phase: tenants::Phase) -> bool {
    match error.code() {
        Some("3D000" | "42704" | "42P01" | "3F000") => true,
        Some("42501") => phase == tenants::Phase::Creating,
        _ => false,
    }
}
