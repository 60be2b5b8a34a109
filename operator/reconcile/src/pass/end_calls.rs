//! Ends what dead keys still run before their roles are closed: a backend is ended only as its own role, and afterwards
//! no login can become that role.

use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::session;
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::backends;
use sqlx::Connection as _;

use super::Pass;
use crate::apply::Logins;
use crate::desired::Desired;
use crate::plan::As;
use crate::source::ResourceSource;

/// How long it is waited for the end of a backend, in milliseconds. Later it ends nevertheless.
const END_TIMEOUT_MS: i64 = 1_000;

impl<S: ResourceSource> Pass<'_, S> {
    /// Ends the calls of keys that no longer live. Data planes do the same within 2 s of a revocation; this is for where
    /// none is left. A failure stops nothing: what follows takes rights away, and the next pass tries again.
    pub(super) async fn end_calls(&self, desired: &Desired, logins: &mut Logins<'_>) {
        match self.end_all(desired, logins).await {
            Ok(0) => {}
            Ok(n) => tracing::info!(tenant = %desired.slug, n, "ended calls of dead keys"),
            Err(error) => {
                tracing::warn!(tenant = %desired.slug, %error, "cannot end calls of dead keys");
            }
        }
    }

    async fn end_all(&self, desired: &Desired, logins: &mut Logins<'_>) -> Result<usize, PgError> {
        // a look that finds nothing opens no connection and writes nothing
        if !backends::any_dead(logins.get(As::Owner).await?).await? {
            return Ok(0);
        }
        let login = self.installation.tenant(&desired.tenant, TenantLogin::Auth, desired.database.as_str());
        let mut auth = session::connect(&login).await?;
        let (n, _) = backends::end_dead(&mut auth, END_TIMEOUT_MS).await?;
        // the work is done; a connection that does not close well is the server's to clear
        let _ = auth.close().await;
        Ok(n)
    }
}
