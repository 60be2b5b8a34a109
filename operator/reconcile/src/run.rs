//! The only loop: wake, snapshot, plan, apply, report. A wake carries no data; every look reads everything anew.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rowgate_crds::{ApiKey, Tenant};
use rowgate_pg::failure::PgError;
use rowgate_pg::installation::Installation;
use rowgate_pg::replicas::Seen;
use rowgate_pg::{replicas, session, tenants};
use rowgate_sql::ddl::records;
use sqlx::PgConnection;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::apply::Logins;
use crate::pass::{Memory, Pass};
use crate::plan::As;
use crate::report::{Told, orphan};
use crate::source::{ResourceSource, Snapshot, SourceError};
use crate::status::{KeyState, Replicas, TenantState, awaits_replicas};

/// How often things are looked at.
#[derive(Debug, Clone)]
pub struct Settings {
    /// After this long without a change everything is compared with the database again, to find what was changed
    /// there by hand.
    pub relook: Duration,
    /// The data plane's address, for `status.endpoints`, such as `http://127.0.0.1:8080`.
    pub api_url: String,
}

/// While a replica is waited for, and while one might die.
const AWAITING: Duration = Duration::from_millis(100);
const WATCHING: Duration = Duration::from_secs(2);
/// Otherwise, for tables that somebody changed.
const GLANCE: Duration = Duration::from_secs(1);
/// After a look that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Reconciles until `shutdown`. What fails is told in status and tried again; nothing ends the loop but the token.
pub async fn run<S: ResourceSource>(
    source: Arc<S>,
    installation: Installation,
    settings: Settings,
    shutdown: CancellationToken,
) {
    let mut looker = Looker {
        told: Told::new(settings.api_url.clone()),
        source,
        installation,
        memories: BTreeMap::new(),
        tenants: Vec::new(),
        orphans: Vec::new(),
        control: None,
        seen: Seen::new(),
        stirred: false,
    };
    while !shutdown.is_cancelled() {
        let failed = match shutdown.run_until_cancelled(looker.look()).await {
            None => break,
            Some(Ok(())) => looker.tenants.iter().any(|tenant| tenant.findings.retry.is_some()),
            Some(Err(error)) => {
                tracing::warn!(%error, "the look at the resources failed and is tried again");
                true
            }
        };
        let relook = if failed { RETRY } else { jittered(settings.relook) };
        let relook = Instant::now() + looker.due().map_or(relook, |due| due.min(relook));
        shutdown.run_until_cancelled(looker.watch(relook)).await;
    }
}

fn jittered(span: Duration) -> Duration {
    span.mul_f64(0.9 + 0.1 * rand::random::<f64>())
}

struct Looker<S> {
    source: Arc<S>,
    installation: Installation,
    told: Told,
    /// By uid of the Tenant.
    memories: BTreeMap<String, Memory>,
    tenants: Vec<TenantState>,
    orphans: Vec<KeyState>,
    /// The control database, as the operator.
    control: Option<PgConnection>,
    /// What the replicas said of the tables when they were last asked.
    seen: Seen,
    /// A replica saw other tables since, and its tenant is served as before: somebody changed them by hand.
    stirred: bool,
}

/// Why a whole look failed; nothing was deleted because of it.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Pg(#[from] PgError),
}

impl<S: ResourceSource> Looker<S> {
    /// How long it is until the first secret or key is due, for rotation or to die.
    fn due(&self) -> Option<Duration> {
        // a moment later than the database said: what is looked for has come then
        Some(self.tenants.iter().filter_map(|tenant| tenant.next_look).min()? + AWAITING)
    }

    async fn look(&mut self) -> Result<(), LookError> {
        let snapshot = self.source.snapshot().await?;
        self.retire(&snapshot).await?;
        let mut states = Vec::with_capacity(snapshot.tenants.len());
        for tenant in &snapshot.tenants {
            let uid = tenant.metadata.uid.clone().unwrap_or_default();
            let memory = self.memories.entry(uid).or_insert_with(|| Memory::new(self.told.clone()));
            let pass = Pass {
                source: &*self.source,
                installation: &self.installation,
                snapshot: &snapshot,
                tenant,
                keys: keys_of(tenant, &snapshot),
                memory,
            };
            states.push(pass.run().await);
        }
        self.tenants = states;
        let known = |key: &ApiKey| snapshot.tenants.iter().any(|tenant| belongs(key, tenant));
        self.orphans = snapshot.api_keys.iter().filter(|key| !known(key)).map(|key| orphan(key)).collect();
        let replicas = self.replicas().await?;
        self.report(&replicas).await
    }

    /// Tenants whose manifest is gone: their keys are revoked, their database is kept and served no more.
    async fn retire(&mut self, snapshot: &Snapshot) -> Result<(), LookError> {
        let mut conn = session::connect(&self.installation.operator()).await?;
        for record in tenants::not_retained(&mut conn).await? {
            let there =
                snapshot.tenants.iter().any(|t| t.metadata.uid.as_deref() == Some(record.uid.as_str()));
            if there {
                continue;
            }
            // first, and until it is done: a replica that is cut off from the control database serves them still
            match self.revoke_all(&record).await {
                Err(error) if !matches!(error, PgError::Sqlstate { .. }) => {
                    tracing::warn!(tenant = %record.slug, %error, "the Tenant is gone; its keys are revoked as soon as its database answers");
                    continue;
                }
                // a database that was never finished, or that somebody dropped, has no keys
                Err(error) => {
                    tracing::warn!(tenant = %record.slug, %error, "the Tenant is gone, and its database too")
                }
                Ok(()) => {
                    tracing::info!(tenant = %record.slug, "the Tenant is gone; its keys are revoked and its database is kept");
                }
            }
            tenants::set_retained(&mut conn, &record.id).await?;
            replicas::wake(&mut conn).await?;
            self.memories.remove(&record.uid);
        }
        Ok(())
    }

    async fn revoke_all(&self, record: &tenants::Record) -> Result<(), PgError> {
        let mut logins = Logins::new(&self.installation, &record.id, &record.database);
        session::execute(logins.get(As::Owner).await?, &records::revoke_all_keys()).await?;
        logins.close().await;
        Ok(())
    }

    /// The replicas that live now.
    async fn replicas(&mut self) -> Result<Replicas, LookError> {
        // kept open: this is asked every 100 ms while a replica is waited for
        let mut conn = match self.control.take() {
            Some(conn) => conn,
            None => session::connect(&self.installation.operator()).await?,
        };
        let live = replicas::live(&mut conn).await?;
        let seen = replicas::seen(&mut conn).await?;
        self.stirred |= is_new(&seen, &self.seen);
        self.seen = seen;
        self.control = Some(conn);
        Ok(live.into_iter().map(|(_, served)| served).collect())
    }

    async fn report(&self, replicas: &Replicas) -> Result<(), LookError> {
        Ok(self.source.report(&self.told.statuses(&self.tenants, &self.orphans, replicas)).await?)
    }

    /// Until something may have changed or it is time to look again; meanwhile statuses follow the replicas.
    async fn watch(&mut self, relook: Instant) {
        let source = self.source.clone();
        let changed = source.changed();
        tokio::pin!(changed);
        // with thousands of keys a report costs more than a glance at the replicas
        let mut told: Option<(Replicas, Instant)> = None;
        loop {
            let awaiting = match self.follow(&mut told).await {
                Ok(replicas) => self.tenants.iter().any(|tenant| awaits_replicas(tenant, &replicas)),
                Err(error) => {
                    tracing::warn!(%error, "statuses could not be written; they are tried again");
                    true
                }
            };
            if std::mem::take(&mut self.stirred) {
                return;
            }
            let next = Instant::now() + if awaiting { AWAITING } else { GLANCE };
            tokio::select! {
                () = &mut changed => return,
                () = tokio::time::sleep_until(relook.min(next)) => if relook <= Instant::now() { return },
            }
        }
    }

    /// Reports when the replicas are not what they were, and now and then for keys that expire.
    async fn follow(&mut self, told: &mut Option<(Replicas, Instant)>) -> Result<Replicas, LookError> {
        let replicas = self.replicas().await?;
        if told.as_ref().is_none_or(|(seen, at)| *seen != replicas || WATCHING <= at.elapsed()) {
            self.report(&replicas).await?;
            *told = Some((replicas.clone(), Instant::now()));
        }
        Ok(replicas)
    }
}

/// A fingerprint that nobody reported before for a tenant that somebody reported at the same generation. After a change
/// of ours the generation is another one.
fn is_new(now: &Seen, before: &Seen) -> bool {
    now.iter().any(|(tenant, seen)| before.get(tenant).is_some_and(|before| !seen.is_subset(before)))
}

fn belongs(key: &ApiKey, tenant: &Tenant) -> bool {
    key.metadata.namespace == tenant.metadata.namespace
        && Some(&key.spec.tenant_ref.name) == tenant.metadata.name.as_ref()
}

fn keys_of<'a>(tenant: &Tenant, snapshot: &'a Snapshot) -> Vec<&'a ApiKey> {
    snapshot.api_keys.iter().filter(|key| belongs(key, tenant)).map(|key| &**key).collect()
}
