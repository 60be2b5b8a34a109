//! The tenants that this replica serves, by slug. Swapped as a whole; a swap blocks no request.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
use rowgate_core::name::{TenantSlug, Ulid};
use rowgate_core::problem::Problem;
use rowgate_pg::connect::login::{Endpoint, Login};
use rowgate_pg::control::installation::DataplaneInstallation;
use rowgate_pg::control::servers::ServerList;
use rowgate_pg::control::tenants::TenantRow;
use rowgate_pg::wire::{
    CallLimits, KeyLogins, Limits, QueryLimits, RequestPool, Server, ServerLoad, Sessions, Share,
};
use tokio::sync::Notify;

use crate::app::Tasks;
use crate::tenants::tenant::{DatabaseLocation, Tenant, TenantPools, TenantReport};

/// Every tenant, to be found by slug and in the order of slugs.
#[derive(Default)]
struct TenantList {
    by_slug: HashMap<TenantSlug, Arc<Tenant>>,
    sorted: Vec<Arc<Tenant>>,
}

/// How requests reach each tenant's database.
pub struct PoolConfig {
    /// Who we are there.
    pub replica: Ulid,
    pub request_limits: Limits,
    pub calls: CallLimits,
    pub queries: QueryLimits,
    /// Connections to one server, or to the pooler, at most.
    pub per_server: usize,
    /// A PgBouncer, which only the request pool goes through: a call needs a session that is the key's own.
    pub pooler: Option<Endpoint>,
}

/// Every tenant of the installation.
pub struct TenantRegistry {
    /// `None` until the control database was read once.
    tenants: RwLock<Option<Arc<TenantList>>>,
    /// Chooses the stand-in of a slug without a tenant; unpredictable from outside.
    stand_ins: RandomState,
    pools: PoolConfig,
    /// Whom connections are opened to, and what all tenants there share.
    servers: Mutex<Vec<(Endpoint, Server)>>,
    tasks: Tasks,
    tried: AtomicBool,
    /// Wakes the loop that follows the control database: something there, or here, is new.
    pub wake: Arc<Notify>,
}

/// Who answers a key.
pub struct TenantMatch {
    pub tenant: Arc<Tenant>,
    /// False: it stands in for a tenant that does not exist, and none of its keys may be found.
    pub is_named: bool,
}

impl TenantRegistry {
    /// No tenant yet.
    #[must_use]
    pub fn new(pools: PoolConfig, tasks: Tasks) -> TenantRegistry {
        let sessions = if pools.pooler.is_some() { Sessions::Pooled } else { Sessions::Own };
        let request_limits = Limits { sessions, ..pools.request_limits };
        TenantRegistry {
            tenants: RwLock::default(),
            stand_ins: RandomState::new(),
            pools: PoolConfig { request_limits, ..pools },
            servers: Mutex::default(),
            tasks,
            tried: AtomicBool::new(false),
            wake: Arc::default(),
        }
    }

    /// Who answers a key of that slug: its tenant, or for a slug without a tenant another one, the same until a tenant comes
    /// or goes. `None`: there are no tenants. So a client that floods an address, or finds a database down or a catalog missing
    /// behind it, sees the same with and without a tenant of that name, after the same work.
    ///
    /// # Errors
    /// 503 before the control database was read once: no key can be refused yet.
    pub fn find(&self, slug: &TenantSlug) -> Result<Option<TenantMatch>, Problem> {
        let all = self.all().ok_or_else(Problem::unavailable)?;
        let Some(n) = u64::try_from(all.sorted.len()).ok().filter(|n| 0 < *n) else { return Ok(None) };
        // computed in both cases
        let nth = usize::try_from(self.stand_ins.hash_one(slug) % n).expect("less than a length");
        let (named, stand_in) = (all.by_slug.get(slug), &all.sorted[nth]);
        Ok(Some(TenantMatch { tenant: named.unwrap_or(stand_in).clone(), is_named: named.is_some() }))
    }

    /// Who this replica is in the control database.
    pub(crate) fn replica(&self) -> &Ulid {
        &self.pools.replica
    }

    /// All of them, by slug.
    pub fn sorted(&self) -> Vec<Arc<Tenant>> {
        self.all().map(|all| all.sorted.clone()).unwrap_or_default()
    }

    /// True from when the first list of tenants was read and each catalog was loaded, or could not be.
    pub fn all_loads_attempted(&self) -> bool {
        if !self.tried.load(Ordering::Acquire) {
            let all =
                self.all().is_some_and(|all| all.sorted.iter().all(|tenant| tenant.was_load_attempted()));
            self.tried.store(all, Ordering::Release);
        }
        self.tried.load(Ordering::Acquire)
    }

    /// Takes over the control database's list: new tenants appear, gone ones are closed, catalogs that are behind
    /// start to load, without waiting for any.
    pub fn take_over(
        self: &Arc<Self>,
        installation: &DataplaneInstallation,
        rows: Vec<TenantRow>,
        places: &ServerList,
    ) {
        let before = self.all().unwrap_or_default();
        let mut after = HashMap::with_capacity(rows.len());
        for row in rows {
            let location = match places.of(installation, row.cluster.as_deref()) {
                Ok(cluster) => DatabaseLocation { cluster: cluster.clone(), database: row.database.clone() },
                Err(error) => {
                    // its cluster moves at this moment: a valid key must not be refused as one of nobody
                    match before.by_slug.get(&row.slug).filter(|old| old.id == row.id) {
                        Some(old) => drop(after.insert(row.slug, old.clone())),
                        None => tracing::warn!(tenant = %row.slug, %error, "a tenant is not served"),
                    }
                    continue;
                }
            };
            let tenant = self.existing_or_new(&before, installation, &row, location);
            self.start_to_catch_up(&tenant, row.generation);
            self.start_to_check(&tenant);
            after.insert(row.slug, tenant);
        }
        let gone =
            before.sorted.iter().filter(|old| after.get(&old.slug).is_none_or(|new| !Arc::ptr_eq(new, old)));
        for tenant in gone {
            tracing::info!(tenant = %tenant.slug, "no longer served");
            tenant.close();
        }
        let mut sorted: Vec<Arc<Tenant>> = after.values().cloned().collect();
        sorted.sort_by(|a, b| a.slug.cmp(&b.slug));
        let all = TenantList { by_slug: after, sorted };
        *self.tenants.write() = Some(Arc::new(all));
    }

    /// The report on each tenant.
    pub fn reports(&self) -> HashMap<Ulid, TenantReport> {
        let all = self.all().unwrap_or_default();
        all.sorted.iter().filter_map(|tenant| Some((tenant.id.clone(), tenant.report()?))).collect()
    }

    fn existing_or_new(
        &self,
        before: &TenantList,
        installation: &DataplaneInstallation,
        row: &TenantRow,
        location: DatabaseLocation,
    ) -> Arc<Tenant> {
        let (id, slug) = (row.id.clone(), row.slug.clone());
        if let Some(kept) = before.by_slug.get(&slug).filter(|old| old.id == id && old.location == location) {
            return kept.clone();
        }
        let cluster = &*location.cluster;
        let auth = installation.auth(&id, cluster, &location.database);
        let lookups = installation.lookups(&id, cluster, &location.database);
        let share = self.server(&auth.endpoint).share();
        let request_pool = match &self.pools.pooler {
            // the pooler is one of the control database's server
            Some(pooler) if row.cluster.is_none() => {
                let login = Login { endpoint: pooler.clone(), ..auth.clone() };
                RequestPool::of(login, self.pools.request_limits, &self.server(pooler).share())
            }
            _ => {
                let limits = Limits { sessions: Sessions::Own, ..self.pools.request_limits };
                RequestPool::of(auth.clone(), limits, &share)
            }
        };
        let logins = {
            let sql = installation.sql(&id, cluster, &location.database);
            let (own, place) = (installation.clone(), location.cluster.clone());
            let verifier = Box::new(move |role: &str| own.verifier(role, &place));
            let (own, place, database) =
                (installation.clone(), location.cluster.clone(), location.database.clone());
            let key = move |role: &str| own.key(role, &place, &database);
            KeyLogins { key: Box::new(key), sql, auth, verifier }
        };
        let (calls, queries, replica) = (self.pools.calls, self.pools.queries, self.pools.replica.clone());
        let pools = TenantPools { lookups, request_pool, logins, calls, queries, replica, share };
        Arc::new(Tenant::new(id, slug, location, pools, self.tasks.clone(), self.wake.clone()))
    }

    /// What all tenants of this server share.
    fn server(&self, endpoint: &Endpoint) -> Server {
        let mut servers = self.servers.lock();
        if let Some((_, known)) = servers.iter().find(|(known, _)| known == endpoint) {
            return known.clone();
        }
        let server = Server::new(self.pools.per_server);
        servers.push((endpoint.clone(), server.clone()));
        server
    }

    /// What connections to this server are shared among.
    pub(crate) fn share(&self, endpoint: &Endpoint) -> Share {
        self.server(endpoint).share()
    }

    /// Whether the control database was read once.
    pub(crate) fn is_known(&self) -> bool {
        self.all().is_some()
    }

    /// The tenant with this id, if it is served.
    pub(crate) fn by_id(&self, id: &str) -> Option<Arc<Tenant>> {
        self.all()?.sorted.iter().find(|tenant| tenant.id.as_str() == id).cloned()
    }

    /// How busy each server is, by its address.
    pub fn servers(&self) -> Vec<(String, ServerLoad)> {
        let servers = self.servers.lock();
        servers.iter().map(|(endpoint, server)| (endpoint.to_string(), server.load())).collect()
    }

    fn start_to_catch_up(self: &Arc<Self>, tenant: &Arc<Tenant>, generation: i64) {
        let up_to_date =
            tenant.was_load_attempted() && tenant.generation().is_some_and(|served| generation <= served);
        if up_to_date || !tenant.begin_to_catch_up() {
            return;
        }
        let tenant = tenant.clone();
        // A database that does not answer is tried at the next look.
        self.tasks.start(async move { tenant.catch_up(generation).await });
    }

    fn start_to_check(&self, tenant: &Arc<Tenant>) {
        if tenant.begin_to_check() {
            let tenant = tenant.clone();
            self.tasks.start(async move { tenant.check().await });
        }
    }

    fn all(&self) -> Option<Arc<TenantList>> {
        self.tenants.read().clone()
    }
}
