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

    /// The record of a tenant whose cluster `rebind` has said to be this one now.
    pub(super) async fn follow_moved(&self, record: &mut tenants::Record) -> Result<(), PassError> {
        let cluster = self.servers.cluster(&self.server);
        if let Some(from) = record.cluster.as_deref().filter(|from| Some(*from) != cluster)
            && self.servers.moved(from, &self.server).await?
        {
            record.cluster = cluster.map(str::to_owned);
        }
        Ok(())
    }

    /// Whether the database is where the Tenant says: a Secret that names another cluster moves nothing.
    pub(super) fn is_of_server(&self, record: &tenants::Record) -> Result<(), PassError> {
        let cluster = self.servers.cluster(&self.server);
        if record.cluster.as_deref() == cluster {
            return Ok(());
        }
        let (from, to) = (self.identifier(record.cluster.as_deref()), self.identifier(cluster));
        let message = format!(
            "database {} is in PostgreSQL cluster {from}, and spec.database.serverSecretRef leads to cluster {to}; restore the Secret, or if the \
             databases of cluster {from} were moved to {to}, run `rowgate-dataplane rebind {from} --to {to}`",
            record.database
        );
        Err(PassError::Refused(Reason::ServerRefused, message))
    }

    fn identifier<'a>(&'a self, cluster: Option<&'a str>) -> &'a str {
        cluster.unwrap_or(&self.installation.system_identifier)
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
