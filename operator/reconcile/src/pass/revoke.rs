//! Keys that are not to live, wherever the pass over their Tenant ends.

use rowgate_crds::{Kind, Reason};
use rowgate_pg::connect::session;
use rowgate_pg::control::tenants;
use rowgate_pg::tenant::keys;

use super::{Pass, PassError};
use crate::apply::Logins;
use crate::removal::revocation;
use crate::source::ResourceSource;
use crate::status::TenantState;

impl<S: ResourceSource> Pass<'_, S> {
    /// The uids of the keys that are to live, and of those that cannot be read.
    fn wanted(&self) -> Vec<String> {
        let live = self.keys.iter().filter(|key| !key.spec.revoked);
        let unread = self.snapshot.unread_of(Kind::ApiKey).map(|key| key.uid.clone());
        live.filter_map(|key| key.metadata.uid.clone()).chain(unread).collect()
    }

    /// A database that is taken up again may hold keys that live, such as those of a backup; whatever else is refused
    /// later, nothing is served from it while one of them does.
    pub(super) async fn revoke_before_served(&self, logins: &mut Logins<'_>) -> Result<(), PassError> {
        let Some(epoch) = self.memory.epoch else { return Ok(()) };
        let revoked = keys::revoke_others(logins.records().await?, &self.wanted(), Some(epoch)).await;
        let n_revoked = revoked.map_err(|error| match error.code() {
            Some(code) if !error.is_collision() && !error.is_shortage() => {
                let message = format!(
                    "an earlier key is not revoked, so nothing is served: PostgreSQL answered {code}; correct in the database what refuses it"
                );
                PassError::Refused(Reason::StatementRefused, message)
            }
            _ => error.into(),
        })?;
        if 0 < n_revoked {
            tracing::info!(n_revoked, "revoked earlier keys that have no manifest");
        }
        Ok(())
    }

    /// Revokes the keys that are not to live.
    pub(super) async fn revoke_dead(&mut self, state: &TenantState) -> Result<(), PassError> {
        let mut conn = session::connect(&self.installation.operator()).await?;
        let Some(record) = tenants::find_by_uid(&mut conn, &state.object.uid).await? else { return Ok(()) };
        let uids = self.wanted();
        let server = self.servers.of_record(self.source, &record).await?;
        let epoch = &mut self.memory.epoch;
        let n_revoked =
            revocation::revoke_others(&server, self.connections, self.lead, epoch, &record, &uids).await?;
        if 0 < n_revoked {
            tracing::info!(tenant = %state.slug, n_revoked, "revoked keys although the Tenant is not ready");
        }
        Ok(())
    }
}
