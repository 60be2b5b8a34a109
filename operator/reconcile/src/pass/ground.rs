//! What stands before anything inside is planned: the tenant's row, its login roles and database, schema `dl`.

use rowgate_core::role::TenantLogin;
use rowgate_crds::Reason;
use rowgate_pg::actual::Cluster;
use rowgate_pg::failure::PgError;
use rowgate_pg::{introspect, migrate, session, tenants};

use super::settle::abouts;
use super::{Pass, PassError};
use crate::apply::Logins;
use crate::chance;
use crate::desired::Desired;
use crate::plan::{self, As};
use crate::source::ResourceSource;
use crate::status::TenantState;

impl<S: ResourceSource> Pass<'_, S> {
    /// The tenant's row in the control database, made before anything else exists.
    pub(super) async fn record(&self, state: &TenantState) -> Result<tenants::Record, PassError> {
        let mut conn = session::connect(&self.installation.operator()).await?;
        let uid = &state.object.uid;
        if let Some(record) = tenants::find_by_uid(&mut conn, uid).await? {
            return Ok(record);
        }
        if let Some(old) = tenants::find_by_slug(&mut conn, &state.slug).await? {
            if old.phase != tenants::Phase::Retained {
                let message = format!("the slug {} belongs to another Tenant; choose another", state.slug);
                return Err(PassError::Refused(Reason::SlugTaken, message));
            }
            return Ok(
                tenants::adopt(&mut conn, &old.id, uid, &state.object.namespace, &state.object.name).await?
            );
        }
        let new = tenants::NewTenant {
            id: &chance::ulid(),
            slug: &state.slug,
            uid,
            namespace: &state.object.namespace,
            name: &state.object.name,
            database: &state.database,
        };
        tenants::create(&mut conn, new).await.map_err(|error| match error.code() {
            Some("23505") => {
                let message = format!(
                    "the database name {} is taken by another Tenant; set spec.database.name",
                    state.database
                );
                PassError::Refused(Reason::Taken, message)
            }
            _ => error.into(),
        })
    }

    /// Login roles and the database.
    pub(super) async fn shell(
        &self,
        state: &TenantState,
        desired: &Desired,
        logins: &mut Logins<'_>,
    ) -> Result<Cluster, PassError> {
        let database = desired.database.as_str();
        let operator = self.installation.operator().role;
        let cluster = introspect::cluster(logins.get(As::Operator).await?, &desired.tenant, database).await?;
        let foreign =
            cluster.database.as_ref().filter(|there| there.owner != TenantLogin::Owner.role(&desired.tenant));
        if let Some(there) = foreign {
            let message = format!(
                "database {database} exists and belongs to {}; set spec.database.name to another name, or rename it",
                there.owner
            );
            return Err(PassError::Refused(Reason::Taken, message));
        }
        let ops = plan::shell(desired, &cluster, &operator);
        if ops.is_empty() {
            return Ok(cluster);
        }
        if self.memory.settled.is_some() {
            self.drifted(state, &abouts(&ops)).await?;
        }
        tracing::info!(tenant = %desired.slug, database, "creating or repairing the tenant's roles and database");
        logins.apply(&ops, None).await?;
        Ok(introspect::cluster(logins.get(As::Operator).await?, &desired.tenant, database).await?)
    }

    /// Schema `dl`, the fence, the bootstrap script.
    pub(super) async fn open(
        &mut self,
        state: &TenantState,
        logins: &mut Logins<'_>,
    ) -> Result<(), PassError> {
        let conn = logins.get(As::Owner).await?;
        migrate::tenant(conn).await?;
        if self.memory.epoch.is_none() {
            self.memory.epoch = Some(tenants::claim_epoch(conn).await?);
        }
        let Some(bootstrap) = &self.tenant.spec.database.bootstrap else { return Ok(()) };
        if tenants::bootstrapped(conn).await? {
            return Ok(());
        }
        let reference = &bootstrap.config_map_ref;
        let map = self.snapshot.config_maps.get(&(state.object.namespace.clone(), reference.name.clone()));
        let script = map.and_then(|data| data.get(&reference.key)).ok_or_else(|| {
            let message = format!(
                "bootstrap names ConfigMap {} key {}, which is not there; apply it",
                reference.name, reference.key
            );
            PassError::Refused(Reason::ConfigMapNotFound, message)
        })?;
        tracing::info!(tenant = %state.slug, config_map = %reference.name, "running the bootstrap script");
        let done = tenants::bootstrap(conn, script).await;
        logins.leave_owner().await;
        done.map_err(|error| match &error {
            PgError::Sqlstate { code, message, .. } => PassError::Refused(
                Reason::BootstrapFailed,
                format!("the bootstrap script failed and nothing of it stands: PostgreSQL answered {code}: {message}"),
            ),
            _ => error.into(),
        })
    }
}
