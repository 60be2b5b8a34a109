//! Tenants to which nothing has happened. PostgreSQL counts the rows that are written in each database and in the catalogs that all databases
//! share; where it has counted none since before a pass that found everything in order, the next one would find the same, and is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rowgate_core::name::Ulid;
use rowgate_crds::Tenant;
use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::last_used;
use rowgate_pg::introspect::{self, Counted, Writes};
use tokio::time::Instant;

use super::entries::Entry;
use super::job::Shared;
use super::{Controller, Done};
use crate::pass::{PassError, is_deleting};
use crate::source::ResourceSource;

/// How often servers are asked what they have counted. A session that goes on adds its numbers at the latest 10 s after its commit.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// After this long a tenant is compared whatever was counted: a superuser's session may count nothing, and events grow old.
const COMPARE_INTERVAL: Duration = Duration::from_secs(600);
/// A key that was used within this time has a status that changes. Data planes say it once a minute.
const USE_INTERVAL: Duration = Duration::from_secs(150);

/// Namespace and name of the Secret that names a server; `None`: the control database's.
type ServerName = Option<(String, String)>;

/// What all servers have counted.
pub(super) struct Sample {
    at: Instant,
    servers: BTreeMap<ServerName, (Arc<Installation>, Writes)>,
    /// Tenants of which a key was used lately.
    used: BTreeSet<Ulid>,
}

/// The numbers of one tenant: those of its database, and of what its server's databases share.
pub(super) struct Mark {
    server: Arc<Installation>,
    shared: Counted,
    database: Counted,
}

impl PartialEq for Mark {
    fn eq(&self, other: &Mark) -> bool {
        Arc::ptr_eq(&self.server, &other.server)
            && self.shared == other.shared
            && self.database == other.database
    }
}

impl Sample {
    /// Asks each of these servers. One that does not answer is left out.
    async fn take<S: ResourceSource>(shared: &Shared<S>, names: BTreeSet<ServerName>) -> Sample {
        let at = Instant::now();
        let mut servers = BTreeMap::new();
        for name in names {
            if let Ok(counted) = counted(shared, &name).await {
                servers.insert(name, counted);
            }
        }
        let used = async {
            let operator = shared.installation.operator();
            let mut conn = shared.connections.connect(&operator).await?;
            let used = last_used::used_within(&mut conn, USE_INTERVAL).await?;
            shared.connections.keep(operator, conn);
            Ok::<_, PassError>(used)
        };
        match used.await {
            Ok(used) => Sample { at, servers, used },
            Err(_) => Sample { at, servers: BTreeMap::new(), used: BTreeSet::new() },
        }
    }

    /// As it is now, for the next pass over this tenant. `None`: nothing is known of it.
    pub(super) fn mark(&self, tenant: &Tenant, entry: &Entry) -> Option<Mark> {
        let (server, writes) = self.servers.get(&server_of(tenant))?;
        let database = writes.databases.get(&entry.state.as_ref()?.database)?.clone();
        Some(Mark { server: server.clone(), shared: writes.shared.clone(), database })
    }

    fn is_used(&self, entry: &Entry) -> bool {
        entry.state.as_ref().and_then(|state| state.id.as_ref()).is_some_and(|id| self.used.contains(id))
    }

    /// Whether nothing has happened to the tenant since the last pass over it began.
    fn is_as_marked(&self, entry: &Entry) -> bool {
        let now = entry.tenant.as_ref().and_then(|tenant| self.mark(tenant, entry));
        now.is_some() && now == entry.mark && !self.is_used(entry)
    }
}

async fn counted<S: ResourceSource>(
    shared: &Shared<S>,
    name: &ServerName,
) -> Result<(Arc<Installation>, Writes), PassError> {
    let server = match name {
        None => shared.installation.clone(),
        Some((namespace, name)) => shared.servers.named(&*shared.source, namespace, name).await?,
    };
    let operator = server.operator();
    let mut conn = shared.connections.connect(&operator).await?;
    let writes = introspect::writes(&mut conn).await?;
    shared.connections.keep(operator, conn);
    Ok((server, writes))
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
        && sample.is_as_marked(entry)
        && entry.memory.as_ref().is_some_and(|memory| memory.secrets_are_unchanged(view))
}

/// Whether the last pass left nothing to do or to say again, and the tenant has nothing that time or other Secrets change.
fn is_in_order(entry: &Entry) -> bool {
    let (Some(state), Some(tenant)) = (&entry.state, &entry.tenant) else { return false };
    let findings = state.keys.iter().map(|key| &key.findings).chain([&state.findings]);
    let beside = entry.inputs.keys.iter().any(|key| is_deleting(&key.metadata))
        || entry.inputs.relationships.iter().any(|it| is_deleting(&it.metadata));
    state.done
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
        let tenants = self.entries.values().filter_map(|entry| entry.tenant.as_ref());
        let (shared, names) = (self.shared.clone(), tenants.map(|tenant| server_of(tenant)).collect());
        self.jobs.spawn(async move { Done::Sampled(Box::new(Sample::take(&shared, names).await)) });
    }

    /// Tenants whose passes are left out are due as soon as something has happened to them.
    pub(super) fn sampled(&mut self, sample: Sample) {
        let now = Instant::now();
        (self.sampling, self.next_sample) = (false, now + SAMPLE_INTERVAL.min(self.resync.mul_f64(0.2)));
        for entry in self.entries.values_mut().filter(|it| it.rests && !it.busy()) {
            if !sample.is_as_marked(entry) {
                (entry.rests, entry.due) = (false, now);
            }
        }
        self.sample = Some(sample);
    }
}
