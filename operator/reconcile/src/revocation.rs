//! Revoking where a pass stopped early: nothing that is wrong with a Tenant may keep a key alive.

use rowgate_crds::ApiKey;
use rowgate_pg::failure::PgError;
use rowgate_pg::installation::Installation;
use rowgate_pg::{keys, session, tenants};

use crate::apply::Logins;
use crate::plan::As;
use crate::status::TenantState;

/// Revokes the keys whose manifest is gone or says revoked. `api_keys`: those that name the Tenant.
pub(crate) async fn revoke_dead(
    installation: &Installation,
    state: &TenantState,
    api_keys: &[&ApiKey],
) -> Result<(), PgError> {
    let mut conn = session::connect(&installation.operator()).await?;
    let Some(record) = tenants::find_by_uid(&mut conn, &state.object.uid).await? else { return Ok(()) };
    if record.phase == tenants::Phase::Creating {
        return Ok(());
    }
    let live = api_keys.iter().filter(|key| !key.spec.revoked);
    let uids: Vec<String> = live.filter_map(|key| key.metadata.uid.clone()).collect();
    let mut logins = Logins::new(installation, &record.id, &record.database);
    let n_revoked = keys::revoke_others(logins.get(As::Owner).await?, &uids).await?;
    logins.close().await;
    if 0 < n_revoked {
        tracing::info!(tenant = %state.slug, n_revoked, "revoked keys although the Tenant is not ready");
    }
    Ok(())
}
