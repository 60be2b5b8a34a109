//! Tenants to which nothing has happened. PostgreSQL counts the rows that are written in each database and in the catalogs that all databases
//! share; where it has counted none since before a pass that found everything in order, the next one would find the same, and is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rowgate_core::name::Ulid;
use rowgate_crds::Tenant;
use rowgate_pg::connect::session;
use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::last_used;
use rowgate_pg::introspect::{self, Counted, Writes};
use sqlx::PgConnection;
use tokio::time::{Instant, timeout};

use super::entries::Entry;
use super::job::Shared;
use super::{Controller, Done};
use crate::entropy;
use crate::pass::{PassError, is_deleting};
use crate::source::ResourceSource;

/// How often servers are asked what they have counted. A session adds its numbers once it is idle, at the latest 10 s after that.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// After this long a tenant is compared whatever was counted: a session that is never idle adds nothing, nor does one of a superuser that
/// says so, and events grow old.
const COMPARE_INTERVAL: Duration = Duration::from_secs(600);
/// How long one server may take to answer.
const SAMPLE_TIMEOUT: Duration = Duration::from_secs(3);
/// A key that was used within this time has a status that changes. Data planes say it once a minute.
const USE_INTERVAL: Duration = Duration::from_secs(150);

/// Namespace and name of the Secret that names a server; `None`: the control database's.
type ServerName = Option<(String, String)>;

/// What all servers have counted.
pub(super) struct Sample {
    at: Instant,
    servers: BTreeMap<ServerName, (Arc<Installation>, Writes)>,
    /// One session of each server, for the next sample: when a server read its files differs by session.
    sessions: Sessions,
    /// Tenants of which a key was used lately.
    used: BTreeSet<Ulid>,
}

type Sessions = BTreeMap<ServerName, (Arc<Installation>, PgConnection)>;

/// The numbers of one tenant: those of its database, and of what its server's databases share.
pub(super) struct Counters {
    server: Arc<Installation>,
    shared: Counted,
    database: Counted,
}

impl PartialEq for Counters {
    fn eq(&self, other: &Counters) -> bool {
        Arc::ptr_eq(&self.server, &other.server)
            && self.shared == other.shared
            && self.database == other.database
    }
}

impl Sample {
    /// Asks each of these servers, by `sessions` of before. One that does not answer is left out.
    async fn take<S: ResourceSource>(
        shared: &Shared<S>,
        names: BTreeSet<ServerName>,
        mut sessions: Sessions,
    ) -> Sample {
        let at = Instant::now();
        let asked = names.into_iter().map(|name| {
            let session = sessions.remove(&name);
            async move { (timeout(SAMPLE_TIMEOUT, counted(shared, &name, session)).await, name) }
        });
        let (mut servers, mut sessions) = (BTreeMap::new(), BTreeMap::new());
        for (counted, name) in join_all(asked).await {
            let Ok(Ok((server, writes, session))) = counted else { continue };
            servers.insert(name.clone(), (server.clone(), writes));
            sessions.insert(name, (server, session));
        }
        let used = async {
            let operator = shared.installation.operator();
            let mut conn = shared.connections.connect(&operator).await?;
            let used = last_used::used_within(&mut conn, USE_INTERVAL).await?;
            shared.connections.keep(operator, conn);
            Ok::<_, PassError>(used)
        };
        match used.await {
            Ok(used) => Sample { at, servers, sessions, used },
            Err(_) => Sample { at, servers: BTreeMap::new(), sessions, used: BTreeSet::new() },
        }
    }

    /// As it is now, for the next pass over this tenant. `None`: nothing is known of it.
    pub(super) fn counters(&self, tenant: &Tenant, entry: &Entry) -> Option<Counters> {
        let (server, writes) = self.servers.get(&server_of(tenant))?;
        let database = writes.databases.get(&entry.state.as_ref()?.database)?.clone();
        Some(Counters { server: server.clone(), shared: writes.shared.clone(), database })
    }

    fn is_used(&self, entry: &Entry) -> bool {
        entry.state.as_ref().and_then(|state| state.id.as_ref()).is_some_and(|id| self.used.contains(id))
    }

    /// What has happened to the tenant since the last pass over it began.
    fn happened(&self, entry: &Entry) -> Happened {
        let now = entry.tenant.as_ref().and_then(|tenant| self.counters(tenant, entry));
        match now.zip(entry.counters.as_ref()) {
            Some((now, before)) if now.database != before.database => Happened::ToIt,
            Some((now, before)) if now == *before && !self.is_used(entry) => Happened::Nothing,
            _ => Happened::Perhaps,
        }
    }
}

#[derive(PartialEq)]
enum Happened {
    Nothing,
    /// In what databases share, or it cannot be told.
    Perhaps,
    ToIt,
}

async fn counted<S: ResourceSource>(
    shared: &Shared<S>,
    name: &ServerName,
    session: Option<(Arc<Installation>, PgConnection)>,
) -> Result<(Arc<Installation>, Writes, PgConnection), PassError> {
    let server = match name {
        None => shared.installation.clone(),
        Some((namespace, name)) => shared.servers.named(&*shared.source, namespace, name).await?,
    };
    let mut conn = match session {
        Some((known, conn)) if Arc::ptr_eq(&known, &server) => conn,
        _ => session::connect(&server.operator()).await?,
    };
    let writes = introspect::writes(&mut conn).await?;
    Ok((server, writes, conn))
}

fn server_of(tenant: &Tenant) -> ServerName {
    let secret = tenant.spec.database.server_secret_ref.as_ref()?;
    Some((tenant.metadata.namespace.clone().unwrap_or_default(), secret.name.clone()))
}

/// Whether the pass that is due can be left out.
pub(super) fn can_rest<S: ResourceSource>(entry: &Entry, sample: Option<&Sample>, source: &S) -> bool {
    let Some(sample) = sample.filter(|it| it.at.elapsed() <= SAMPLE_INTERVAL * 2) else { return false };
    let is_recent = entry.compared.is_some_and(|at| at.elapsed() < COMPARE_INTERVAL);
    let is_dated = entry.dated.is_some_and(|at| at <= Instant::now());
    let view = |namespace: &str, name: &str| source.secret_view(namespace, name);
    !entry.wanted
        && is_recent
        && !is_dated
        && is_in_order(entry)
        && sample.happened(entry) == Happened::Nothing
        && entry.memory.as_ref().is_some_and(|memory| memory.secrets_are_unchanged(view))
}

/// Whether the last pass tried all passwords and left nothing to do or to say again, and the tenant has nothing that time or other Secrets
/// change.
fn is_in_order(entry: &Entry) -> bool {
    let (Some(state), Some(tenant)) = (&entry.state, &entry.tenant) else { return false };
    let findings = state.keys.iter().map(|key| &key.findings).chain([&state.findings]);
    let beside = entry.inputs.keys.iter().any(|key| is_deleting(&key.metadata))
        || entry.inputs.relationships.iter().any(|it| is_deleting(&it.metadata));
    state.done
        && entry.whole
        && state.login_failure.is_none()
        && state.events.as_ref().is_none_or(|(is_well, _)| *is_well)
        && !beside
        && findings.into_iter().all(|it| it.retry.is_none() && it.stalled.is_empty())
        && tenant.spec.database.migrations.is_none()
        && entry.inputs.subscriptions.is_empty()
        && !is_deleting(&tenant.metadata)
}

impl<S: ResourceSource + 'static> Controller<S> {
    /// Begins to ask the servers, where that can spare a pass.
    pub(super) fn start_sample(&mut self) {
        if self.sampling || Instant::now() < self.next_sample || !self.shared.source.watches_secrets() {
            return;
        }
        self.sampling = true;
        // those of other tenants are not asked, or even opened, for this
        let asking = self.entries.values().filter(|entry| is_in_order(entry));
        let names =
            asking.filter_map(|entry| entry.tenant.as_ref()).map(|tenant| server_of(tenant)).collect();
        let sessions = self.sample.as_mut().map(|sample| std::mem::take(&mut sample.sessions));
        let shared = self.shared.clone();
        self.jobs.spawn(async move {
            let sample = Box::pin(Sample::take(&shared, names, sessions.unwrap_or_default())).await;
            Done::Sampled(Box::new(sample))
        });
    }

    /// Tenants whose passes are left out are due as soon as something has happened to them.
    pub(super) fn sampled(&mut self, sample: Sample) {
        let now = Instant::now();
        (self.sampling, self.next_sample) = (false, now + SAMPLE_INTERVAL.min(self.resync.mul_f64(0.2)));
        for entry in self.entries.values_mut().filter(|it| it.rests && !it.busy()) {
            let happened = sample.happened(entry);
            if happened == Happened::Nothing {
                continue;
            }
            entry.rests = false;
            // a role or a grant anywhere on a server concerns all its tenants a little: they must not come all at once, nor more often than
            // those that never rest
            let spread = self.resync.mul_f64(entropy::between(0.0, 0.4));
            let next = entry.compared.map_or(now, |at| now.max(at + self.resync)) + spread;
            entry.due = entry.due.min(if happened == Happened::ToIt { now } else { next });
        }
        self.sample = Some(sample);
    }
}
