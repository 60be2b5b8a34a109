//! What stands before anything inside is planned: the tenant's row, its login roles and database, schema `dl`.

use rowgate_core::role::TenantLogin;
use rowgate_crds::Reason;
use rowgate_pg::actual::{Cluster, TenantDb};
use rowgate_pg::failure::PgError;
use rowgate_pg::{introspect, leader, migrate, tenants};

use super::settle::drift;
use super::{Pass, PassError};
use crate::apply::Logins;
use crate::chance;
use crate::desired::Desired;
use crate::plan::{self, As};
use crate::revocation;
use crate::source::ResourceSource;
use crate::status::TenantState;

impl<S: ResourceSource> Pass<'_, S> {
    /// The tenant's row in the control database, made before anything else exists.
    pub(super) async fn record(&self, state: &TenantState) -> Result<tenants::Record, PassError> {
        let operator = self.installation.operator();
        let mut conn = self.kept.connect(&operator).await?;
        let uid = &state.object.uid;
        if let Some(record) = tenants::find_by_uid(&mut conn, uid).await? {
            self.kept.keep(operator, conn);
            return Ok(record);
        }
        if let Some(old) = tenants::find_by_slug(&mut conn, &state.slug).await? {
            if old.phase != tenants::Phase::Retained {
                return Err(slug_is_taken(state));
            }
            // its database may be about to be dropped
            if self.snapshot.tenants.iter().any(|it| it.metadata.uid.as_deref() == Some(old.uid.as_str())) {
                let message = format!(
                    "the slug {} belongs to Tenant {}/{}, which is being deleted; wait until it is gone, or delete this one and make it with another spec.slug",
                    state.slug, old.namespace, old.name
                );
                return Err(PassError::Refused(Reason::SlugTaken, message));
            }
            let mut open = leader::fence(&mut conn, self.lead).await?;
            let (namespace, name) = (&state.object.namespace, &state.object.name);
            let record = tenants::adopt(&mut open, &old.id, uid, namespace, name).await?;
            open.commit().await.map_err(PgError::from)?;
            return Ok(record);
        }
        let new = tenants::NewTenant {
            id: &chance::ulid(),
            slug: &state.slug,
            uid,
            namespace: &state.object.namespace,
            name: &state.object.name,
            database: &state.database,
        };
        let mut open = leader::fence(&mut conn, self.lead).await?;
        match tenants::create(&mut open, new).await {
            Ok(record) => {
                open.commit().await.map_err(PgError::from)?;
                Ok(record)
            }
            Err(error) if error.code() == Some("23505") => {
                open.rollback().await.map_err(PgError::from)?;
                // another pass may have made the slug its Tenant's since we looked
                let slug_taken = tenants::find_by_slug(&mut conn, &state.slug).await?.is_some();
                Err(if slug_taken { slug_is_taken(state) } else { database_is_taken(state) })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Login roles and the database. True: something was done. `looked`: what PostgreSQL holds, if that was read just now.
    pub(super) async fn shell(
        &self,
        state: &TenantState,
        desired: &Desired,
        logins: &mut Logins<'_>,
        looked: Option<Cluster>,
    ) -> Result<(Cluster, bool), PassError> {
        let database = desired.database.as_str();
        let operator = self.installation.operator().role;
        let cluster = match looked {
            Some(cluster) => cluster,
            None => introspect::cluster(logins.get(As::Operator).await?, &desired.tenant, database).await?,
        };
        let foreign =
            cluster.database.as_ref().filter(|there| there.owner != TenantLogin::Owner.role(&desired.tenant));
        if let Some(there) = foreign {
            let message = format!(
                "database {database} exists and belongs to {}; rename it, or delete this Tenant and make it with another spec.database.name",
                there.owner
            );
            return Err(PassError::Refused(Reason::Taken, message));
        }
        let ops = plan::shell(desired, &cluster, &operator);
        if ops.is_empty() {
            return Ok((cluster, false));
        }
        if self.memory.settled.is_some() {
            self.drifted(state, &drift(&ops, desired, &TenantDb::default())).await?;
        }
        tracing::info!(tenant = %desired.slug, database, "creating or repairing the tenant's roles and database");
        logins.apply(&ops, None).await?;
        let cluster = introspect::cluster(logins.get(As::Operator).await?, &desired.tenant, database).await?;
        Ok((cluster, true))
    }

    /// Schema `dl`, the fence, the bootstrap script. True: something was done.
    pub(super) async fn open(
        &mut self,
        state: &TenantState,
        logins: &mut Logins<'_>,
    ) -> Result<bool, PassError> {
        let conn = logins.get(As::Owner).await?;
        let (epoch, done) = match self.memory.epoch {
            Some(epoch) => (epoch, 0 < migrate::tenant(conn).await?),
            None => (revocation::claim(self.installation, self.lead, conn, true).await?, true),
        };
        self.memory.epoch = Some(epoch);
        let Some(bootstrap) = &self.tenant.spec.database.bootstrap else { return Ok(done) };
        if tenants::bootstrapped(conn).await? {
            return Ok(done);
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
        let done = tenants::bootstrap(conn, script, epoch).await;
        logins.leave_owner().await;
        done.map_err(|error| match &error {
            PgError::Sqlstate { code, message, .. }
                if code != leader::REPLACED && !error.is_collision() && !error.is_shortage() => PassError::Refused(
                Reason::BootstrapFailed,
                format!(
                    "the bootstrap script failed and nothing of it stands: PostgreSQL answered {code}: {message}; \
                     correct the script"
                ),
            ),
            _ => error.into(),
        })?;
        Ok(true)
    }
}

fn slug_is_taken(state: &TenantState) -> PassError {
    let message = format!(
        "the slug {} belongs to another Tenant, and a Tenant keeps its slug; delete this one and make it with another spec.slug",
        state.slug
    );
    PassError::Refused(Reason::SlugTaken, message)
}

fn database_is_taken(state: &TenantState) -> PassError {
    let message = format!(
        "the database {} belongs to another Tenant; delete this one and make it with another spec.database.name",
        state.database
    );
    PassError::Refused(Reason::Taken, message)
}
