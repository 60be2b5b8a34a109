//! One tenant as this replica knows it: its catalog, the keys seen with it, and the way to its database.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rowgate_core::name::{TenantSlug, Ulid};
use rowgate_core::problem::Problem;
use rowgate_core::secret::Credential;
use rowgate_pg::catalog_load;
use rowgate_pg::failure::PgError;
use rowgate_pg::fingerprint::Watched;
use rowgate_pg::keys::{self, Found};
use rowgate_pg::login::{Endpoint, Login};
use rowgate_pg::pool::{self, PgPool};
use rowgate_pg::replicas::Served;
use rowgate_pg::tenants::TenantRow;
use rowgate_pg::wire::{Lane, Limits};
use rowgate_sql::catalog::{Catalog, Scope};
use tokio::sync::Notify;

use crate::app::Tasks;
use crate::freshness::{Freshness, Turn};
use crate::meter::Meter;

mod allowance;
mod keyring;
mod strangers;
mod uses;

use allowance::{Allowance, Buckets};
use keyring::Keyring;
use strangers::{AT_ONCE, Pass, Strangers};
pub use uses::{Unwritten, Use, Uses};

/// Connections for key look-ups and catalogs; the requests' own are the lane's. One is never a stranger's.
const LOOK_UPS: u32 = AT_ONCE + 1;
/// A catalog is read within this, or the tenant counts as unavailable until the next try.
const LOAD_TIME: Duration = Duration::from_secs(10);

/// A tenant that the control database lists as live.
pub struct Tenant {
    pub id: Ulid,
    pub slug: TenantSlug,
    pub place: Place,
    pub lane: Lane,
    pub meter: Meter,
    look_ups: PgPool,
    strangers: Strangers,
    /// They outlive catalogs: a new one gives nobody a new allowance.
    buckets: Buckets,
    pub uses: Uses,
    tasks: Tasks,
    /// Told whenever another catalog is served.
    loaded: Arc<Notify>,
    snapshot: RwLock<Option<Arc<Snapshot>>>,
    /// Held while a catalog is read: whoever waited for it finds the new one.
    loading: tokio::sync::Mutex<()>,
    tried: AtomicBool,
    catching_up: AtomicBool,
    answers: AtomicBool,
}

/// Where a tenant's database is; another place makes another [`Tenant`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `None`: the control database's server.
    pub endpoint: Option<Endpoint>,
    pub database: String,
}

/// A catalog and the keys seen while it was current. Replaced as a whole, so that no key outlives its generation here.
pub struct Snapshot {
    pub catalog: Catalog,
    watched: Arc<Watched>,
    freshness: Freshness,
    keys: Keyring,
}

/// A key record with the catalog that it belongs to. What it may do is the database's to say, on every request.
#[derive(Clone)]
pub struct Known {
    pub snapshot: Arc<Snapshot>,
    pub key: Arc<Found>,
    /// `None` where the tenant has no rate limit.
    allowance: Option<Arc<Allowance>>,
    pub used: Arc<Use>,
    /// The database gave the record during this request.
    pub fresh: bool,
}

impl Place {
    #[must_use]
    pub fn of(row: &TenantRow) -> Place {
        Place { endpoint: row.endpoint.clone(), database: row.database.clone() }
    }
}

impl Tenant {
    /// Opens nothing yet: the first request or [`Tenant::catch_up`] does.
    #[must_use]
    pub fn new(
        id: Ulid,
        slug: TenantSlug,
        place: Place,
        login: Login,
        limits: Limits,
        tasks: Tasks,
        loaded: Arc<Notify>,
    ) -> Tenant {
        Tenant {
            id,
            slug,
            place,
            look_ups: pool::lazy(&login, LOOK_UPS),
            lane: Lane::with_limits(login, limits),
            meter: Meter::default(),
            strangers: Strangers::default(),
            buckets: Buckets::default(),
            uses: Uses::default(),
            tasks,
            loaded,
            snapshot: RwLock::default(),
            loading: tokio::sync::Mutex::default(),
            tried: AtomicBool::new(false),
            catching_up: AtomicBool::new(false),
            answers: AtomicBool::new(true),
        }
    }

    /// The generation of the catalog that is served; `None` before the first.
    pub fn generation(&self) -> Option<i64> {
        Some(self.current()?.catalog.generation)
    }

    /// What the catalog that is served was read from; `None` before the first.
    pub fn served(&self) -> Option<Served> {
        let snapshot = self.current()?;
        let fingerprint = snapshot.watched.fingerprint;
        Some(Served { generation: snapshot.catalog.generation, fingerprint })
    }

    /// Whose pages may call it; nobody's before the first catalog.
    #[must_use]
    pub fn lists_origin(&self, is: impl Fn(&str) -> bool) -> bool {
        let snapshot = self.current();
        snapshot.is_some_and(|now| now.catalog.limits.cors_origins.iter().any(|origin| is(origin)))
    }

    /// False from when the tenant's database did not answer until it does again.
    pub fn answers(&self) -> bool {
        self.answers.load(Ordering::Relaxed)
    }

    /// True once a first catalog was loaded, or could not be.
    pub fn was_tried(&self) -> bool {
        self.tried.load(Ordering::Acquire)
    }

    /// True for the one who may call [`Tenant::catch_up`] now.
    pub fn begin_to_catch_up(&self) -> bool {
        !self.catching_up.swap(true, Ordering::AcqRel)
    }

    /// Loads the catalog unless one of `generation` or newer is served. A failure is logged, and the next look at the control database tries again.
    pub async fn catch_up(&self, generation: i64) {
        let seen = self.current();
        if seen.as_ref().is_none_or(|seen| seen.catalog.generation < generation) {
            let _told_and_tried_again = self.reload(seen.as_ref()).await;
        }
        self.tried.store(true, Ordering::Release);
        self.catching_up.store(false, Ordering::Release);
    }

    /// Finds the live key, from memory or from the database, together with the catalog of the same generation.
    pub async fn recognize(&self, credential: &Credential) -> Result<Known, Problem> {
        let snapshot = self.current_or_loaded().await?;
        match snapshot.keys.get(credential) {
            Some((key, allowance, used)) => Ok(Known { snapshot, key, allowance, used, fresh: false }),
            None => self.ask_anew(credential, snapshot).await,
        }
    }

    /// As [`Tenant::recognize`], with the database's word of now.
    pub async fn recognize_anew(&self, credential: &Credential) -> Result<Known, Problem> {
        let snapshot = self.current_or_loaded().await?;
        self.ask_anew(credential, snapshot).await
    }

    /// Loads the catalog again unless somebody did since `seen`.
    pub async fn reload(&self, seen: Option<&Arc<Snapshot>>) -> Result<Arc<Snapshot>, Problem> {
        let _one_at_a_time = self.loading.lock().await;
        if let Some(newer) = self.current().filter(|now| seen.is_none_or(|seen| !Arc::ptr_eq(now, seen))) {
            return Ok(newer);
        }
        let (pool, freshness) = (self.look_ups.clone(), Freshness::new(Instant::now()));
        let load = async move { catalog_load::load(&mut *pool.acquire().await?).await };
        let failed = |_: &Problem| self.meter.catalog_load_failures.add_one();
        let (catalog, watched) = self.outliving(load).await.inspect_err(failed)?;
        self.meter.catalog_loads.add_one();
        let keys = self.current().map(|old| old.keys.successor()).unwrap_or_default();
        let snapshot = Arc::new(Snapshot { catalog, watched: Arc::new(watched), freshness, keys });
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Some(snapshot.clone());
        tracing::info!(tenant = %self.slug, generation = snapshot.catalog.generation, "catalog loaded");
        self.loaded.notify_one();
        Ok(snapshot)
    }

    /// Looks a credential up and forgets the answer: what a key of no tenant costs, so that it takes as long as one of a
    /// tenant. An error says that too many strangers wait, or that the database does not answer, as it would to one with
    /// this tenant's name.
    pub async fn look_up_in_vain(&self, credential: &Credential) -> Result<(), Problem> {
        let pass = self.strangers.pass().await.ok_or_else(Problem::unavailable)?;
        self.find(credential, Some(pass)).await.map(drop)
    }

    /// As [`Tenant::compare`], if nobody did lately: for requests that the catalog alone answers.
    async fn look(&self, snapshot: Arc<Snapshot>) -> Result<Arc<Snapshot>, Problem> {
        let Some((_, turn)) = snapshot.turn() else { return Ok(snapshot) };
        let looked = self.compare(&snapshot).await?;
        if Arc::ptr_eq(&looked, &snapshot) {
            snapshot.confirm(turn);
        }
        Ok(looked)
    }

    /// The same catalog while the tables are those that it was read from; else it is loaded anew.
    pub async fn compare(&self, snapshot: &Arc<Snapshot>) -> Result<Arc<Snapshot>, Problem> {
        let (pool, watched) = (self.look_ups.clone(), snapshot.watched.clone());
        let look = async move { watched.look(&mut *pool.acquire().await?).await };
        match self.outliving(look).await? == snapshot.watched.fingerprint {
            true => Ok(snapshot.clone()),
            false => self.reload(Some(snapshot)).await,
        }
    }

    /// Ends the connections. Requests that still hold the tenant get 503.
    pub async fn close(&self) {
        self.look_ups.close().await;
    }

    /// Asks the database until its record and a catalog agree on the generation: twice, where nobody changes anything.
    async fn ask_anew(&self, credential: &Credential, mut snapshot: Arc<Snapshot>) -> Result<Known, Problem> {
        for _ in 0..4 {
            let pass = match snapshot.keys.knows(credential) {
                true => None,
                false => Some(self.strangers.pass().await.ok_or_else(Problem::unavailable)?),
            };
            let Some(found) = self.find(credential, pass).await? else {
                snapshot.forget(credential);
                return Err(Problem::unauthorized());
            };
            if found.generation == snapshot.catalog.generation {
                let looked = self.look(snapshot.clone()).await?;
                if !Arc::ptr_eq(&looked, &snapshot) {
                    snapshot = looked;
                    continue;
                }
                let (now, used) = (Instant::now(), self.uses.of(&found.id));
                self.uses.note(&used, now);
                let limited = snapshot.catalog.limits.requests_per_second.is_some();
                let allowance = limited.then(|| Arc::new(Allowance::new(self.buckets.of(&found.id, now))));
                let (key, allowance, used) = snapshot.keys.remember(credential, found, allowance, used);
                return Ok(Known { snapshot, key, allowance, used, fresh: true });
            }
            if found.generation > snapshot.catalog.generation {
                snapshot = self.reload(Some(&snapshot)).await?;
            }
        }
        Err(Problem::unavailable())
    }

    /// `pass` is held as long as the exchange runs, whoever still waits for it.
    async fn find(&self, credential: &Credential, pass: Option<Pass>) -> Result<Option<Found>, Problem> {
        match pass {
            None => self.meter.look_ups_of_known_keys.add_one(),
            Some(_) => self.meter.look_ups_of_strangers.add_one(),
        }
        let (pool, credential) = (self.look_ups.clone(), credential.clone());
        let exchange = async move {
            let found = keys::find(&mut *pool.acquire().await?, &credential).await;
            drop(pass);
            found
        };
        self.outliving(exchange).await
    }

    async fn current_or_loaded(&self) -> Result<Arc<Snapshot>, Problem> {
        match self.current() {
            Some(snapshot) => Ok(snapshot),
            None => self.reload(None).await,
        }
    }

    fn current(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs an exchange in a task of its own: a caller that goes away must not leave a connection in the middle of one.
    async fn outliving<T: Send + 'static>(
        &self,
        exchange: impl Future<Output = Result<T, PgError>> + Send + 'static,
    ) -> Result<T, Problem> {
        let task = self.tasks.start(tokio::time::timeout(LOAD_TIME, exchange));
        let cause = match task.await {
            Ok(Ok(Ok(value))) => {
                self.note(true, "");
                return Ok(value);
            }
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_)) => format!("no answer within {} s", LOAD_TIME.as_secs()),
            Err(error) => error.to_string(),
        };
        self.note(false, &cause);
        Err(Problem::unavailable())
    }

    /// Logs when the tenant's database begins or ceases to answer, not each time.
    pub fn note(&self, answers: bool, cause: &str) {
        // Read first: nearly always there is nothing to write, and every request passes here.
        let before = self.answers.load(Ordering::Relaxed);
        if before == answers || self.answers.swap(answers, Ordering::AcqRel) == answers {
            return;
        }
        match answers {
            true => tracing::info!(tenant = %self.slug, "the tenant's database answers again"),
            false => tracing::warn!(tenant = %self.slug, cause, "the tenant's database does not answer"),
        }
    }
}

impl Known {
    /// Whether the same record of the same catalog stands behind both.
    #[must_use]
    pub fn is_same(&self, other: &Known) -> bool {
        Arc::ptr_eq(&self.snapshot, &other.snapshot)
            && self.key.role == other.key.role
            && self.key.set_role == other.key.set_role
    }
}

impl Snapshot {
    /// What `key` may do. A key whose permission set is not in the catalog may do nothing.
    #[must_use]
    pub fn scope(&self, key: &Found) -> Arc<Scope> {
        let set = key.set_role.as_ref().and_then(|set| self.catalog.scopes.get(set));
        set.cloned().unwrap_or_default()
    }

    /// What is to be asked along with a request now, and the turn to [`Snapshot::confirm`] when nothing has changed.
    pub fn turn(&self) -> Option<(Arc<Watched>, Turn)> {
        Some((self.watched.clone(), self.freshness.turn(Instant::now())?))
    }

    /// The tables were those of the catalog when that turn was taken.
    pub fn confirm(&self, turn: Turn) {
        self.freshness.confirm(turn);
    }

    /// Drops a key that the database no longer knows.
    pub fn forget(&self, credential: &Credential) {
        self.keys.forget(credential);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn found(set_role: Option<&str>) -> Found {
        Found {
            id: Ulid::from_parts(1, [0; 10]),
            role: "datalake_user".to_owned(),
            set_role: set_role.map(ToOwned::to_owned),
            secret: Ulid::from_parts(1, [1; 10]),
            seconds_left: 1_000_000_000,
            generation: 1,
        }
    }

    fn snapshot(catalog: Catalog) -> Snapshot {
        let (watched, freshness) = (Arc::default(), Freshness::new(Instant::now()));
        Snapshot { catalog, watched, freshness, keys: Keyring::default() }
    }

    #[test]
    fn a_key_without_a_known_permission_set_may_do_nothing() {
        let mut catalog = Catalog::default();
        let orders = "orders".parse().expect("a name");
        let scope = Scope { entities: HashMap::from([(orders, rowgate_sql::catalog::Rights::default())]) };
        catalog.scopes.insert("set_a".to_owned(), Arc::new(scope));
        let snapshot = snapshot(catalog);
        assert_eq!(snapshot.scope(&found(Some("set_a"))).entities.len(), 1);
        assert_eq!(snapshot.scope(&found(Some("set_b"))).entities.len(), 0);
        assert_eq!(snapshot.scope(&found(None)).entities.len(), 0);
    }
}
