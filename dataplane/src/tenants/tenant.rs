//! One tenant as this replica knows it: its catalog, the keys seen with it, and the way to its database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use rowgate_core::name::{TenantSlug, Ulid};
use rowgate_core::problem::Problem;
use rowgate_pg::catalog;
use rowgate_pg::connect::login::Endpoint;
use rowgate_pg::connect::login_failure::LoginFailure;
use rowgate_pg::control::replicas::{Report, Served};
use rowgate_pg::control::servers::ClusterPlace;
use rowgate_pg::tenant::lookups::{LookUpLogin, LookUps};
use rowgate_pg::tenant::subscriptions;
use rowgate_pg::wire::{CallLimits, Calls, KeyLogins, KeySessions, Queries, QueryLimits, RequestPool, Share};
use tokio::sync::Notify;

use crate::app::Tasks;
use crate::auth::last_used::LastUsedTimes;
use crate::auth::lookup_limiter::{LookupLimiter, MAX_CONCURRENT_LOOKUPS};
use crate::auth::rate_limit::RateLimits;
use crate::delivery::tenant::{CONNECTIONS, Deliveries};
use crate::export_jobs::{self, ExportCounts};
use crate::server::metrics::RequestMetrics;
use crate::tenants::availability::Availability;
use crate::tenants::call_activity::CallActivity;
use crate::tenants::event_tail::EventTail;
use crate::tenants::freshness::Freshness;
use crate::tenants::load_backoff::LoadBackoff;
use crate::tenants::long_lists::LongLists;
use crate::tenants::snapshot::{Snapshot, TypeCache};

/// Connections for key look-ups and catalogs; the requests' own are those of the request pool. One is never a stranger's.
const LOOKUP_CONNECTIONS: usize = MAX_CONCURRENT_LOOKUPS + 1;
/// A connection or session that has been idle for this long is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// A login failure is reported once it has lasted this long, with an attempt at the end: a single failure, as while a server
/// restarts, is not. A failure that needs a change mostly stays.
const LASTING_FAILURE_DELAY: Duration = Duration::from_secs(1);
const PASSING_FAILURE_DELAY: Duration = Duration::from_secs(3);

/// A tenant that the control database lists as live.
pub struct Tenant {
    pub id: Ulid,
    pub slug: TenantSlug,
    pub location: DatabaseLocation,
    pub request_pool: RequestPool,
    /// Of calls and queries.
    pub(crate) key_sessions: KeySessions,
    pub calls: Calls,
    pub(crate) queries: Queries,
    /// In sessions of their own number, so that they take none of those of [`Tenant::queries`].
    pub(crate) exports: Queries,
    pub(crate) export_counts: ExportCounts,
    pub call_activity: CallActivity,
    pub metrics: RequestMetrics,
    /// PostgreSQL itself, whatever way requests take.
    pub(crate) endpoint: Endpoint,
    pub(crate) look_ups: LookUps,
    pub(crate) lookup_limiter: LookupLimiter,
    /// They outlive catalogs: a new catalog refills no bucket.
    pub(crate) rate_limits: RateLimits,
    pub last_used: LastUsedTimes,
    pub(crate) event_tail: EventTail,
    pub(crate) deliveries: Deliveries,
    pub(super) tasks: Tasks,
    /// Notified whenever another catalog is served.
    loaded: Arc<Notify>,
    snapshot: RwLock<Option<Arc<Snapshot>>>,
    /// Held while a catalog is read: a request that waited for it finds the new one.
    loading: tokio::sync::Mutex<()>,
    pub(super) load_backoff: LoadBackoff,
    load_attempted: AtomicBool,
    catching_up: AtomicBool,
    checking: AtomicBool,
    /// The revoked keys of requests under way are being looked for.
    pub(crate) ending_requests: AtomicBool,
    pub(super) availability: Availability,
}

/// Where a tenant's database is; another place makes another [`Tenant`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseLocation {
    pub cluster: Arc<ClusterPlace>,
    pub database: String,
}

/// What the reconciler learns of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantReport {
    pub report: Report,
    /// A failure in it may be gone with the next try.
    pub is_passing: bool,
}

/// The ways to a tenant's database.
pub struct TenantPools {
    /// As which no request runs.
    pub lookups: LookUpLogin,
    pub request_pool: RequestPool,
    pub logins: KeyLogins,
    pub calls: CallLimits,
    pub queries: QueryLimits,
    /// Who we are there.
    pub replica: Ulid,
    /// The tenant's connections to PostgreSQL itself.
    pub share: Share,
}

impl Tenant {
    /// Opens nothing yet: the first request or [`Tenant::catch_up`] does.
    #[must_use]
    pub fn new(
        id: Ulid,
        slug: TenantSlug,
        location: DatabaseLocation,
        pools: TenantPools,
        tasks: Tasks,
        loaded: Arc<Notify>,
    ) -> Tenant {
        let TenantPools { lookups, request_pool, logins, calls, queries, replica, share } = pools;
        let endpoint = logins.auth.endpoint.clone();
        let look_ups = LookUps::new(lookups.clone(), LOOKUP_CONNECTIONS, &share);
        let deliveries = Deliveries::new(LookUps::new(lookups, CONNECTIONS, &share).for_short_statements());
        let key_sessions = KeySessions::new(logins, request_pool.clone(), look_ups.clone(), replica, &share);
        Tenant {
            id,
            slug,
            location,
            calls: Calls::new(key_sessions.clone(), calls),
            queries: Queries::new(key_sessions.clone(), queries),
            exports: Queries::new(key_sessions.clone(), export_jobs::query_limits()),
            export_counts: ExportCounts::default(),
            key_sessions,
            call_activity: CallActivity::default(),
            endpoint,
            look_ups,
            request_pool,
            metrics: RequestMetrics::default(),
            lookup_limiter: LookupLimiter::default(),
            rate_limits: RateLimits::default(),
            last_used: LastUsedTimes::default(),
            event_tail: EventTail::default(),
            deliveries,
            tasks,
            loaded,
            snapshot: RwLock::default(),
            loading: tokio::sync::Mutex::default(),
            load_backoff: LoadBackoff::default(),
            load_attempted: AtomicBool::new(false),
            catching_up: AtomicBool::new(false),
            checking: AtomicBool::new(false),
            ending_requests: AtomicBool::new(false),
            availability: Availability::default(),
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

    /// What the reconciler learns of it; `None`: nothing yet.
    pub fn report(&self) -> Option<TenantReport> {
        let (served, failing) = (self.served(), self.failing());
        let is_passing = failing.as_ref().is_some_and(|(failure, lasted)| {
            *lasted < if failure.needs_a_change() { LASTING_FAILURE_DELAY } else { PASSING_FAILURE_DELAY }
        });
        let login_failure = failing.map(|(failure, _)| failure);
        if served.is_none() && login_failure.is_none() {
            return None;
        }
        Some(TenantReport { report: Report { served, login_failure }, is_passing })
    }

    /// Why requests cannot be answered for want of a connection, and how long this has been so.
    fn failing(&self) -> Option<(LoginFailure, Duration)> {
        self.request_pool.failing().or_else(|| self.availability.failing())
    }

    /// True for the one who is to call [`Tenant::check`] now.
    pub fn begin_to_check(&self) -> bool {
        let is_due = self.failing().is_some_and(|(_, lasted)| self.availability.begin_to_check(lasted));
        is_due && !self.checking.swap(true, Ordering::AcqRel)
    }

    /// Tries the logins again that failed, so that their recovery is seen without a request.
    pub async fn check(&self) {
        self.request_pool.check().await;
        if self.request_pool.failing().is_none() {
            self.note_availability(true, "");
        }
        // one without a catalog is loaded with each look
        if let (true, Some(snapshot)) = (self.availability.failing().is_some(), self.current()) {
            let _logged_and_retried = self.reload_if_changed(&snapshot).await;
        }
        self.checking.store(false, Ordering::Release);
        if self.failing().is_none() {
            self.loaded.notify_one();
        }
    }

    /// Closes the connections that have been idle for a while.
    pub fn close_idle(&self) {
        self.request_pool.trim(IDLE_TIMEOUT);
        self.look_ups.trim(IDLE_TIMEOUT);
        self.deliveries.connections.trim(IDLE_TIMEOUT);
        self.key_sessions.trim(IDLE_TIMEOUT);
    }

    /// Whether pages of this origin may call it; no origin may before the first catalog.
    #[must_use]
    pub fn lists_origin(&self, is: impl Fn(&str) -> bool) -> bool {
        let snapshot = self.current();
        snapshot.is_some_and(|now| now.catalog.limits.cors_origins.iter().any(|origin| is(origin)))
    }

    /// False from when the tenant's database did not answer, key look-ups or requests, until it does again.
    pub fn answers(&self) -> bool {
        self.availability.is_all()
    }

    /// True once a first catalog was loaded, or could not be.
    pub fn was_load_attempted(&self) -> bool {
        self.load_attempted.load(Ordering::Acquire)
    }

    /// True for the one who may call [`Tenant::catch_up`] now.
    pub fn begin_to_catch_up(&self) -> bool {
        !self.catching_up.swap(true, Ordering::AcqRel)
    }

    /// Loads the catalog unless one of `generation` or newer is served. A failure is logged, and the next look at the control database tries again.
    pub async fn catch_up(&self, generation: i64) {
        let seen = self.current();
        if seen.as_ref().is_none_or(|seen| seen.catalog.generation < generation) {
            let _logged_and_retried = self.reload(seen.as_ref()).await;
        }
        self.load_attempted.store(true, Ordering::Release);
        self.catching_up.store(false, Ordering::Release);
    }

    /// Loads the catalog again unless another request did since `seen`.
    pub async fn reload(&self, seen: Option<&Arc<Snapshot>>) -> Result<Arc<Snapshot>, Problem> {
        let _one_at_a_time = self.loading.lock().await;
        if let Some(newer) = self.current().filter(|now| seen.is_none_or(|seen| !Arc::ptr_eq(now, seen))) {
            return Ok(newer);
        }
        if self.load_backoff.is_active(Instant::now()) {
            return Err(Problem::unavailable());
        }
        let (pool, freshness) = (self.look_ups.clone(), Freshness::new(Instant::now()));
        let load = async move {
            let mut conn = pool.acquire().await?;
            let loaded = match catalog::load(&mut conn).await {
                Ok((catalog, watched)) => {
                    // one that was made through a replica that is gone may be listed nowhere
                    let has_events = catalog.entities.values().any(|entity| entity.events);
                    let has_subscriptions = has_events && subscriptions::any(&mut conn).await;
                    Ok((catalog, watched, has_subscriptions))
                }
                Err(error) => Err(error),
            };
            conn.done(loaded)
        };
        let failed = |_: &Problem| self.metrics.catalog_load_failures.add_one();
        // beside it, so that a catalog that is served is one that requests get to
        let (loaded, ()) = tokio::join!(self.run_detached(load), self.request_pool.check());
        let (catalog, watched, has_subscriptions) = loaded.inspect_err(failed)?;
        self.load_backoff.end();
        self.metrics.catalog_loads.add_one();
        let keys = self.current().map(|old| old.keys.successor()).unwrap_or_default();
        let (watched, long_lists, types) = (Arc::new(watched), LongLists::default(), TypeCache::default());
        let snapshot = Arc::new(Snapshot { catalog, watched, freshness, keys, long_lists, types });
        *self.snapshot.write() = Some(snapshot.clone());
        tracing::info!(tenant = %self.slug, generation = snapshot.catalog.generation, "catalog loaded");
        self.loaded.notify_one();
        if has_subscriptions {
            self.note_subscriptions_changed();
        }
        Ok(snapshot)
    }

    /// As [`Tenant::reload_if_changed`], if that was not done lately: for requests that the catalog alone answers.
    pub(crate) async fn check_freshness(&self, snapshot: Arc<Snapshot>) -> Result<Arc<Snapshot>, Problem> {
        let Some((_, check)) = snapshot.due_check() else { return Ok(snapshot) };
        let looked = self.reload_if_changed(&snapshot).await?;
        if Arc::ptr_eq(&looked, &snapshot) {
            snapshot.confirm(check);
        }
        Ok(looked)
    }

    /// The same catalog while the tables are those that it was read from; else it is loaded again.
    pub async fn reload_if_changed(&self, snapshot: &Arc<Snapshot>) -> Result<Arc<Snapshot>, Problem> {
        let (pool, watched) = (self.look_ups.clone(), snapshot.watched.clone());
        let look = async move {
            let mut conn = pool.acquire().await?;
            let looked = watched.look(&mut conn).await;
            conn.done(looked)
        };
        match self.run_detached(look).await? == snapshot.watched.fingerprint {
            true => Ok(snapshot.clone()),
            false => self.reload(Some(snapshot)).await,
        }
    }

    /// Closes the idle connections, and gives none for look-ups any more.
    pub fn close(&self) {
        self.look_ups.close();
        self.deliveries.close();
        self.request_pool.trim(Duration::ZERO);
        self.key_sessions.trim(Duration::ZERO);
    }

    /// Closes all connections, once what runs on them has ended. Nothing is answered any more.
    pub async fn end(&self) {
        self.look_ups.close();
        self.deliveries.close();
        tokio::join!(
            self.request_pool.close(),
            self.calls.close(),
            self.queries.close(),
            self.exports.close()
        );
        self.key_sessions.close();
    }

    /// Whether a session of a key is open here, or was a moment ago.
    pub fn has_key_sessions(&self) -> bool {
        self.calls.is_in_use() || self.queries.is_in_use() || self.exports.is_in_use()
    }

    pub(crate) async fn current_or_loaded(&self) -> Result<Arc<Snapshot>, Problem> {
        match self.current() {
            Some(snapshot) => Ok(snapshot),
            None => self.reload(None).await,
        }
    }

    pub(crate) fn current(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.read().clone()
    }
}
