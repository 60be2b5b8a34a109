//! What stands before anything inside is planned: the tenant's row, its login roles and database, schema `dl`.

use rowgate_core::name::Ulid;
use rowgate_crds::Reason;
use rowgate_pg::connect::session;
use rowgate_pg::control::tenants::Phase;
use rowgate_pg::control::{leader, tenants};
use rowgate_pg::failure::PgError;
use rowgate_pg::introspect;
use rowgate_pg::introspect::actual::{Cluster, TenantDb};
use sqlx::PgConnection;

use super::adopt::{self, slug_is_taken};
use super::converge::drift;
use super::{Pass, PassError};
use crate::apply::Logins;
use crate::desired::Desired;
use crate::entropy;
use crate::plan::{self, As, adopted};
use crate::source::ResourceSource;
use crate::status::TenantState;

mod migrations;

pub(super) const OLDER_REPLICAS: &str = "a database that was there before is adopted once no data plane of version 0.2 runs, which does not know of it; upgrade the data planes";

/// What the control database holds of a Tenant.
pub(super) enum Recorded {
    Own(tenants::Record),
    /// A retained one, which it takes up.
    Retained(tenants::Record),
    /// Its identifier and database are new.
    Nothing,
}

impl<S: ResourceSource> Pass<'_, S> {
    /// Looks for the tenant's row in the control database.
    pub(super) async fn recorded(
        &self,
        state: &TenantState,
        conn: &mut PgConnection,
    ) -> Result<Recorded, PassError> {
        let uid = &state.object.uid;
        let spec = &self.tenant.spec.database;
        if let Some(record) = tenants::find_by_uid(conn, uid).await? {
            return match record.dropping {
                true => Err(adopt::is_being_dropped(&record)),
                false => Ok(Recorded::Own(record)),
            };
        }
        let old = match (&spec.adopt_retained, adopt::named(spec)) {
            (Some(_), None) => None,
            (Some(_), Some(id)) => tenants::find_by_id(conn, &id).await?,
            (None, _) => tenants::find_by_slug(conn, &state.slug).await?,
        };
        // its database may be about to be dropped
        let object_remains = |old: &tenants::Record| {
            self.snapshot.tenants.iter().any(|it| it.metadata.uid.as_deref() == Some(old.uid.as_str()))
        };
        let claimed = adopt::claim(state, spec, old, object_remains)?;
        Ok(claimed.map_or(Recorded::Nothing, Recorded::Retained))
    }

    /// The same, made before anything else exists.
    pub(super) async fn record(&self, state: &TenantState) -> Result<tenants::Record, PassError> {
        let operator = self.installation.operator();
        let mut conn = self.connections.connect(&operator).await?;
        match self.recorded(state, &mut conn).await? {
            Recorded::Own(record) => {
                self.connections.keep(operator, conn);
                return Ok(record);
            }
            Recorded::Retained(mut old) => {
                self.follow_moved(&mut old).await?;
                self.is_of_server(&old)?;
                return self.adopt(state, &old, &mut conn).await;
            }
            Recorded::Nothing => {}
        }
        self.older_replicas_are_gone(&mut conn).await?;
        let id = entropy::ulid();
        let database = self.database_of(&id);
        let new = tenants::NewTenant {
            id: &id,
            slug: &state.slug,
            uid: &state.object.uid,
            namespace: &state.object.namespace,
            name: &state.object.name,
            cluster: self.servers.cluster(&self.server),
            database: &database,
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

    /// The name of a database that is new. Every SQL session of every tenant reads the names of all databases.
    pub(super) fn database_of(&self, id: &Ulid) -> String {
        self.tenant.spec.database.name.clone().unwrap_or_else(|| format!("t_{id}"))
    }

    /// Gives a retained row to this Tenant.
    async fn adopt(
        &self,
        state: &TenantState,
        old: &tenants::Record,
        conn: &mut PgConnection,
    ) -> Result<tenants::Record, PassError> {
        let object = &state.object;
        let mut open = leader::fence(conn, self.lead).await?;
        let adopted = tenants::adopt(&mut open, old, &object.uid, &object.namespace, &object.name).await?;
        open.commit().await.map_err(PgError::from)?;
        let record = adopted.ok_or_else(|| PassError::Moved(format!("take up database {}", old.database)))?;
        let from = format!("{}/{}", old.namespace, old.name);
        tracing::info!(tenant = %state.slug, id = %record.id, from, "a retained database is adopted");
        Ok(record)
    }

    /// Login roles and the database. True: something was done. `looked`: what PostgreSQL holds, if that was read just now.
    pub(super) async fn roles_and_database(
        &self,
        state: &TenantState,
        desired: &mut Desired,
        logins: &mut Logins<'_>,
        (looked, phase): (Option<Cluster>, Phase),
    ) -> Result<(Cluster, bool), PassError> {
        let database = &*desired.database.as_str().to_owned();
        let operator = self.server.operator().role;
        let mut cluster = match looked {
            Some(cluster) => cluster,
            None => introspect::cluster(logins.get(As::Operator).await?, &desired.tenant, database).await?,
        };
        if desired.is_adopted {
            desired.owner = adopted::judge(desired, &cluster, &operator)?;
            if phase == Phase::Creating {
                let others = introspect::others_of_owner(logins.get(As::Operator).await?, database).await?;
                self.is_owned_apart(&desired.owner, &others, logins.control().await?).await?;
            }
            if cluster.has_older_replicas {
                return Err(PassError::Waits(OLDER_REPLICAS.to_owned()));
            }
        }
        is_its(desired, &cluster)?;
        let mut ops = plan::roles_and_database(desired, &cluster, &operator);
        if ops.is_empty() {
            adopted::enters(desired, &cluster)?;
            return Ok((cluster, false));
        }
        if self.memory.converged.is_some() {
            self.drifted(state, &drift(&ops, desired, &TenantDb::default())).await?;
        }
        tracing::info!(tenant = %desired.slug, database, "creating or repairing the tenant's roles and database");
        // a login that was given its end may be beyond it
        for _ in 0..2 {
            logins.apply(&ops, None).await?;
            cluster = introspect::cluster(logins.get(As::Operator).await?, &desired.tenant, database).await?;
            ops = plan::roles_and_database(desired, &cluster, &operator);
            if ops.is_empty() {
                break;
            }
        }
        adopted::enters(desired, &cluster)?;
        Ok((cluster, true))
    }

    /// That the owner of a database that is about to be adopted owns nothing in that of another team's Tenant: what is run for this one is run as
    /// the owner. One that is served goes on, so that naming a database does not stall it. `others`: where the owner owns something besides.
    pub(super) async fn is_owned_apart(
        &self,
        owner: &str,
        others: &[String],
        conn: &mut PgConnection,
    ) -> Result<(), PassError> {
        let on = self.servers.cluster(&self.server);
        let namespace = self.tenant.metadata.namespace.as_deref().unwrap_or_default();
        match tenants::are_of_another_namespace(conn, on, others, namespace).await? {
            true => Err(adopted::is_shared(owner).into()),
            false => Ok(()),
        }
    }

    /// Schema `dl` and the fence. True: something was done.
    pub(super) async fn open(&mut self, logins: &mut Logins<'_>) -> Result<bool, PassError> {
        let (epoch, done) = match self.memory.epoch {
            Some(epoch) => (epoch, logins.prepare_records().await?),
            None => {
                // before it has a fence of its own, no other reconciler may take over meanwhile
                let mut operator = session::connect(&self.server.operator()).await?;
                let fence = leader::fence(&mut operator, self.lead).await?;
                logins.prepare_records().await?;
                let epoch = tenants::claim_epoch(logins.records().await?).await?;
                fence.rollback().await.map_err(PgError::from)?;
                (epoch, true)
            }
        };
        self.memory.epoch = Some(epoch);
        Ok(done)
    }
}

impl<S: ResourceSource> Pass<'_, S> {
    /// The tenant's own fence is closed: by another reconciler that has taken over, or by the tenant.
    pub(super) async fn fenced(&mut self, state: &mut TenantState, error: &PgError) {
        let asked = async {
            leader::ask(&mut session::connect(&self.installation.operator()).await?, self.lead).await
        };
        match asked.await {
            Err(PgError::Replaced) => state.replaced = true,
            Err(unknown) => {
                let message =
                    format!("{error}; whether another reconciler has taken over is unknown: {unknown}");
                state.findings.retry = Some((Reason::DatabaseUnavailable, message));
            }
            Ok(()) => {
                // the number alone may be another one, and the next pass takes the fence again
                let is_again = std::mem::replace(&mut self.memory.was_fenced, true);
                if is_again {
                    let message = format!(
                        "{error}, although no other reconciler has taken over; restore dl.fence and dl.state, which belong to Rowgate (every resync retries)"
                    );
                    state.findings.stalled.push((Reason::StatementRefused, message));
                } else {
                    let message = "the epoch of dl.state was changed by hand; claiming the fence again";
                    state.findings.retry = Some((Reason::Drifted, message.to_owned()));
                }
            }
        }
        self.memory.epoch = None;
    }
}

/// The database is not there yet, or belongs to the owner of the tables.
pub(super) fn is_its(desired: &Desired, cluster: &Cluster) -> Result<(), PassError> {
    let foreign = cluster.database.as_ref().filter(|there| there.owner != desired.owner);
    foreign.map_or(Ok(()), |there| {
        let message = format!(
            "database {} exists and belongs to {}; rename it, or delete this Tenant and create it with another spec.database.name",
            desired.database.as_str(),
            there.owner
        );
        Err(PassError::Refused(Reason::Taken, message))
    })
}

pub(super) fn database_is_taken(state: &TenantState) -> PassError {
    let message = format!(
        "the database {} belongs to another Tenant; delete this one and create it with another spec.database.name",
        state.database
    );
    PassError::Refused(Reason::Taken, message)
}
