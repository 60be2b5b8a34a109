//! A Tenant that is being deleted: its keys die, its database stays or goes as its policy says, then it is released.
//! When it is interrupted anywhere, the next pass starts again and finds less to do.

use std::collections::BTreeSet;
use std::sync::Arc;

use rowgate_crds::{DeletionPolicy, PAUSED, Reason};
use rowgate_pg::connect::session;
use rowgate_pg::control::{leader, replicas, tenants};
use rowgate_pg::failure::PgError;
use rowgate_pg::introspect;
use rowgate_pg::introspect::actual::Cluster;

use super::release::{REMEDY, is_forced};
use super::{Pass, PassError};
use crate::desired::annotations;
use crate::entropy;
use crate::removal::retained::{self, Removal};
use crate::removal::{adopted, revocation};
use crate::source::{Event, ResourceSource};
use crate::status::TenantState;

const OBSERVED: &str =
    "the annotation rowgate.dev/mode says Observe; the database is dropped after the annotation is removed";

impl<S: ResourceSource> Pass<'_, S> {
    pub(super) async fn delete(&mut self) -> Arc<TenantState> {
        let mut state = self.known();
        let ended = self.end(&mut state).await;
        let forced = is_forced(&self.tenant.metadata);
        if let Err(error) = &ended
            && state.keys.len() == self.keys.len()
        {
            self.release_keys(&mut state, &Err(error.to_string())).await;
        }
        match ended {
            Err(PassError::Pg(error @ PgError::Replaced)) => self.fenced(&mut state, &error).await,
            Ok(()) => self.let_go(&mut state, None).await,
            Err(error) if forced => {
                let note = format!(
                    "released by annotation although the Tenant could not be deleted: {error}; left behind: database {}, the \
                     roles made for it{}, and its keys, which may work until they are revoked there",
                    state.database,
                    state.id.as_ref().map_or_else(String::new, |id| format!(" (tenant id {id})")),
                );
                self.let_go(&mut state, Some(note)).await;
            }
            Err(error) => {
                tracing::warn!(tenant = %state.slug, %error, "the deletion of a Tenant is waiting");
                state.findings.retry = Some((Reason::Deleting, format!("{error}; {REMEDY}")));
            }
        }
        let state = Arc::new(state);
        self.memory.last = Some(state.clone());
        state
    }

    /// Everything but the release.
    async fn end(&mut self, state: &mut TenantState) -> Result<(), PassError> {
        let mut conn = session::connect(&self.installation.operator()).await?;
        let record = tenants::find_by_uid(&mut conn, &state.object.uid).await?;
        let Some(record) = record else {
            self.release_keys(state, &Ok(BTreeSet::new())).await;
            return Ok(());
        };
        state.id = Some(record.id.clone());
        state.database.clone_from(&record.database);
        self.server = self.servers.of_record(self.source, &record).await?;
        let epoch = &mut self.memory.epoch;
        let revoked =
            revocation::revoke_others(&self.server, self.connections, self.lead, epoch, &record, &[]).await;
        let kept = self.tenant.spec.database.deletion_policy == DeletionPolicy::Retain;
        // whatever the tenant's own code does against it: with its database every key of it goes
        if let Err(error) = &revoked
            && !kept
            && !matches!(error, PgError::Replaced)
            && self.remove_unserved(&record, &mut conn).await?
        {
            self.release_keys(state, &Ok(BTreeSet::new())).await;
            return Ok(());
        }
        if revoked.is_ok() {
            let now = entropy::now().to_string();
            for key in &mut state.keys {
                key.revoked_at.get_or_insert_with(|| now.clone());
            }
        }
        revoked?;
        self.release_keys(state, &Ok(BTreeSet::new())).await;
        let cluster = self.cluster(&record).await?;
        if !self.tenant.spec.database.create || adopted::is_adopted(&record, &cluster) {
            return self.give_back(&record, &cluster, &mut conn).await;
        }
        if record.phase != tenants::Phase::Retained {
            self.unserve(&record, &mut conn).await?;
            if kept {
                // only in the namespace of the Tenant
                let (object, id) = (&state.object, &record.id);
                let note = format!(
                    "the keys are revoked and database {} is retained with the id {id}; Tenant {}/{} adopts it when it \
                     is applied again, and so does one with the same spec.slug in namespace {} that has \
                     spec.database.adoptRetained: {id}; platform teams hand it to another namespace or drop it with \
                     rowgate-dataplane retained",
                    record.database, object.namespace, object.name, object.namespace
                );
                self.event("DatabaseRetained", note, false).await?;
            }
        }
        // an earlier attempt may have come to an end between the two
        if kept {
            self.close_migrations(state, &record).await?;
        } else {
            self.remove(&record, &mut conn).await?;
        }
        Ok(())
    }

    async fn cluster(&self, record: &tenants::Record) -> Result<Cluster, PgError> {
        let operator = self.server.operator();
        let mut conn = self.connections.connect(&operator).await?;
        let cluster = introspect::cluster(&mut conn, &record.id, &record.database).await?;
        self.connections.keep(operator, conn);
        Ok(cluster)
    }

    /// A database that was there before is as it was found.
    async fn give_back(
        &self,
        record: &tenants::Record,
        cluster: &Cluster,
        conn: &mut sqlx::PgConnection,
    ) -> Result<(), PassError> {
        if record.phase != tenants::Phase::Retained {
            self.unserve(record, conn).await?;
        }
        let left = adopted::give_back(&self.server, self.connections, self.lead, record, cluster).await?;
        let roles = match left.len() {
            0 => "and every role of the Tenant is dropped".to_owned(),
            n => format!("{n} roles are closed and will be dropped when no other database names them"),
        };
        let note = format!(
            "database {} and its tables are as they were before this Tenant, {roles}",
            record.database
        );
        self.event("DatabaseGivenBack", note, false).await?;
        retained::forget(self.lead, record, conn).await
    }

    /// No replica serves it any more.
    async fn unserve(&self, record: &tenants::Record, conn: &mut sqlx::PgConnection) -> Result<(), PgError> {
        let mut open = leader::fence(conn, self.lead).await?;
        tenants::set_retained(&mut open, &record.id).await?;
        open.commit().await?;
        replicas::wake(conn).await
    }

    /// As [`Pass::remove`], of a tenant whose keys could not be revoked.
    async fn remove_unserved(
        &self,
        record: &tenants::Record,
        conn: &mut sqlx::PgConnection,
    ) -> Result<bool, PassError> {
        self.unserve(record, conn).await?;
        self.remove(record, conn).await
    }

    /// Drops the database and every role of it. False: the database was not made by us, and stays.
    async fn remove(
        &self,
        record: &tenants::Record,
        conn: &mut sqlx::PgConnection,
    ) -> Result<bool, PassError> {
        if annotations::value(&self.tenant.metadata, PAUSED) == Some("true") {
            let message =
                "paused by the annotation rowgate.dev/paused; the database is dropped after it is removed";
            return Err(PassError::Refused(Reason::Paused, message.to_owned()));
        }
        let observes = annotations::observes(&self.tenant.metadata);
        let observed = observes.map_or_else(Some, |observes| observes.then(|| OBSERVED.to_owned()));
        if let Some(message) = observed {
            return Err(PassError::Refused(Reason::Observing, message));
        }
        if !self.tenant.spec.database.create {
            return self.report_kept(record).await;
        }
        match retained::remove(&self.server, self.connections, self.lead, record, conn).await? {
            Removal::Dropped { n_closed } => {
                let roles = match n_closed {
                    0 => "and its roles were dropped".to_owned(),
                    n => format!(
                        "was dropped; {n} of its roles are closed and will be dropped when no other database names them"
                    ),
                };
                let note =
                    format!("database {} {roles}, as deletionPolicy: Delete requires", record.database);
                self.event("DatabaseDeleted", note, false).await?;
                retained::forget(self.lead, record, conn).await?;
                Ok(true)
            }
            Removal::Foreign => self.report_kept(record).await,
            Removal::Gone => Ok(true),
        }
    }

    /// False, as [`Pass::remove`] says.
    async fn report_kept(&self, record: &tenants::Record) -> Result<bool, PassError> {
        let note = format!("database {} was not created by Rowgate and is kept", record.database);
        self.event("DatabaseRetained", note, true).await?;
        Ok(false)
    }

    async fn event(&self, reason: &str, note: String, warning: bool) -> Result<(), PassError> {
        let event = Event { reason: reason.to_owned(), note, warning };
        Ok(self.source.event(&self.tenant.into(), event).await?)
    }

    async fn let_go(&self, state: &mut TenantState, warning: Option<String>) {
        let freed = async {
            if let Some(note) = warning {
                self.event("ForceReleased", note, true).await?;
            }
            Ok::<_, PassError>(self.source.release(&state.object).await?)
        };
        match freed.await {
            Ok(()) => state.gone = true,
            Err(error) => {
                state.findings.retry = Some((Reason::Deleting, format!("{error}; retrying")));
            }
        }
    }
}
