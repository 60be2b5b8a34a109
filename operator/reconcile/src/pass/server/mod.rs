//! On which PostgreSQL server the Tenant's database is.

use std::sync::Arc;

use rowgate_crds::Reason;
use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::tenants;

use super::{Pass, PassError};
use crate::source::ResourceSource;
use crate::status::TenantState;

const OLDER_REPLICAS: &str = "a database on another server is served once no data plane of version 0.2 runs, which does not know of it; upgrade the data planes";

impl<S: ResourceSource> Pass<'_, S> {
    /// Finds it, for the rest of the pass.
    pub(super) async fn reach_server(&mut self, state: &mut TenantState) -> Result<(), PassError> {
        let found = self.find_server().await;
        if found.is_err() {
            self.recall(state).await?;
        }
        self.server = found?;
        Ok(())
    }

    /// The one that the Tenant names, or that of the control database.
    async fn find_server(&self) -> Result<Arc<Installation>, PassError> {
        let Some(secret) = &self.tenant.spec.database.server_secret_ref else {
            return Ok(self.installation.clone());
        };
        let namespace = self.tenant.metadata.namespace.as_deref().unwrap_or_default();
        self.servers.named(self.source, namespace, &secret.name).await
    }

    /// What is known of a tenant whose server is not: it is served as before.
    async fn recall(&self, state: &mut TenantState) -> Result<(), PassError> {
        let operator = self.installation.operator();
        let mut conn = self.connections.connect(&operator).await?;
        if let Some(record) = tenants::find_by_uid(&mut conn, &state.object.uid).await? {
            record_in(state, &record);
        }
        self.connections.keep(operator, conn);
        Ok(())
    }

    /// Whether the database is where the Tenant says: a Secret that names another cluster moves nothing.
    pub(super) fn is_of_server(&self, record: &tenants::Record) -> Result<(), PassError> {
        let cluster = self.servers.cluster(&self.server);
        if record.cluster.as_deref() == cluster {
            return Ok(());
        }
        let other = |cluster: Option<&str>| {
            cluster.map_or("that of the control database".to_owned(), |id| format!("cluster {id}"))
        };
        let message = format!(
            "database {} is in another PostgreSQL cluster than spec.database.serverSecretRef leads to ({}, not {}); restore the Secret",
            record.database,
            other(record.cluster.as_deref()),
            other(cluster)
        );
        Err(PassError::Refused(Reason::ServerRefused, message))
    }

    /// Data planes that know one server must not look for the database there.
    pub(super) async fn older_replicas_are_gone(
        &self,
        conn: &mut sqlx::PgConnection,
    ) -> Result<(), PassError> {
        if self.servers.cluster(&self.server).is_some()
            && rowgate_pg::control::replicas::any_before(conn, 3).await?
        {
            return Err(PassError::Waits(OLDER_REPLICAS.to_owned()));
        }
        Ok(())
    }
}

/// What the record says of the tenant.
pub(super) fn record_in(state: &mut TenantState, record: &tenants::Record) {
    state.id = Some(record.id.clone());
    state.database.clone_from(&record.database);
    if record.phase == tenants::Phase::Live {
        state.served = Some(record.generation);
    }
}
