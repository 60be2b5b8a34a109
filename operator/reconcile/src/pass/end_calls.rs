//! Ends what dead keys still run before their roles are closed, and what keys run where a change of a table waits for it: a backend is
//! ended only as its own role, and afterwards no login can become that role.

use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::session;
use rowgate_pg::control::tenants;
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::backends;
use rowgate_pg::tenant::locks::Held;
use sqlx::Connection as _;

use super::Pass;
use crate::apply::Logins;
use crate::desired::Desired;
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

    /// Ends statements of keys that hold what this pass has to change: a policy must not wait for an export of an hour. The next pass
    /// finds the table free; an export begins again.
    pub(super) async fn end_holders(
        &self,
        record: &tenants::Record,
        holders: &[Held],
        logins: &mut Logins<'_>,
    ) {
        let pids: Vec<i32> = holders.iter().filter_map(|held| held.pid).collect();
        match self.end_of(record, &pids, logins).await {
            Ok(0) => {}
            Ok(n) => {
                tracing::info!(tenant = %record.id, n, "ended statements of keys that held what has to change");
            }
            Err(error) => {
                tracing::warn!(tenant = %record.id, %error, "cannot end statements of keys that hold what has to change");
            }
        }
    }

    async fn end_of(
        &self,
        record: &tenants::Record,
        pids: &[i32],
        logins: &mut Logins<'_>,
    ) -> Result<usize, PgError> {
        let ours = match pids {
            [] => Vec::new(),
            pids => backends::among(logins.records().await?, pids).await?,
        };
        if ours.is_empty() {
            return Ok(0);
        }
        let login = self.server.tenant(&record.id, TenantLogin::Auth, &record.database);
        let mut auth = session::connect(&login).await?;
        for backend in &ours {
            backends::end(&mut auth, backend, END_TIMEOUT_MS).await?;
        }
        let _ = auth.close().await;
        Ok(ours.len())
    }

    async fn end_all(&self, desired: &Desired, logins: &mut Logins<'_>) -> Result<usize, PgError> {
        // a look that finds nothing opens no connection and writes nothing
        let records = logins.records().await?;
        if !backends::any_dead(records).await? {
            return Ok(0);
        }
        let dead = backends::dead(records).await?;
        let login = self.server.tenant(&desired.tenant, TenantLogin::Auth, desired.database.as_str());
        let mut auth = session::connect(&login).await?;
        backends::end_all(&mut auth, &dead, END_TIMEOUT_MS).await?;
        // the work is done; a connection that does not close well is the server's to clear
        let _ = auth.close().await;
        Ok(dead.len())
    }
}
