//! The tenants that this replica serves, by slug. Swapped as a whole; a swap blocks no request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rowgate_core::name::{TenantSlug, Ulid};
use rowgate_core::problem::Problem;
use rowgate_pg::installation::DataplaneInstallation;
use rowgate_pg::replicas::Served;
use rowgate_pg::tenants::TenantRow;
use rowgate_pg::wire::Limits;
use tokio::sync::Notify;

use crate::app::Tasks;
use crate::tenant::{Place, Tenant};

type Map = HashMap<TenantSlug, Arc<Tenant>>;

/// Every tenant of the installation.
pub struct Catalogs {
    /// `None` until the control database was read once.
    tenants: RwLock<Option<Arc<Map>>>,
    lane: Limits,
    tasks: Tasks,
    tried: AtomicBool,
    /// Wakes the loop that follows the control database: something there, or here, is new.
    pub wake: Arc<Notify>,
}

impl Catalogs {
    /// No tenant yet; each will get a lane with these limits.
    #[must_use]
    pub fn new(lane: Limits, tasks: Tasks) -> Catalogs {
        Catalogs {
            tenants: RwLock::default(),
            lane,
            tasks,
            tried: AtomicBool::new(false),
            wake: Arc::default(),
        }
    }

    /// The tenant of that slug. 503 before the control database was read once: nobody can be refused yet.
    pub fn tenant(&self, slug: &TenantSlug) -> Result<Option<Arc<Tenant>>, Problem> {
        Ok(self.all().ok_or_else(Problem::unavailable)?.get(slug).cloned())
    }

    /// Some tenant, whichever.
    pub fn any(&self) -> Option<Arc<Tenant>> {
        self.all()?.values().next().cloned()
    }

    /// All of them, by slug.
    pub fn sorted(&self) -> Vec<Arc<Tenant>> {
        let mut all: Vec<_> = self.all().unwrap_or_default().values().cloned().collect();
        all.sort_by(|a, b| a.slug.cmp(&b.slug));
        all
    }

    /// True from when the first list of tenants was read and each catalog was loaded, or could not be.
    pub fn were_tried(&self) -> bool {
        if !self.tried.load(Ordering::Acquire) {
            let all = self.all().is_some_and(|all| all.values().all(|tenant| tenant.was_tried()));
            self.tried.store(all, Ordering::Release);
        }
        self.tried.load(Ordering::Acquire)
    }

    /// Takes over the control database's list: new tenants appear, gone ones are closed, catalogs that are behind
    /// start to load, without waiting for any.
    pub fn take_over(self: &Arc<Self>, installation: &DataplaneInstallation, rows: Vec<TenantRow>) {
        let before = self.all().unwrap_or_default();
        let mut after = Map::with_capacity(rows.len());
        for row in rows {
            let tenant = self.kept_or_new(&before, installation, &row);
            self.start_to_catch_up(&tenant, row.generation);
            after.insert(row.slug, tenant);
        }
        let gone =
            before.values().filter(|old| after.get(&old.slug).is_none_or(|new| !Arc::ptr_eq(new, old)));
        for tenant in gone {
            tracing::info!(tenant = %tenant.slug, "no longer served");
            let tenant = tenant.clone();
            self.tasks.start(async move { tenant.close().await });
        }
        *self.tenants.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(after));
    }

    /// What each tenant is served from.
    pub fn served(&self) -> HashMap<Ulid, Served> {
        let all = self.all().unwrap_or_default();
        all.values().filter_map(|tenant| Some((tenant.id.clone(), tenant.served()?))).collect()
    }

    /// Every tenant that is served.
    pub fn each(&self) -> Vec<Arc<Tenant>> {
        self.all().map(|all| all.values().cloned().collect()).unwrap_or_default()
    }

    fn kept_or_new(
        &self,
        before: &Map,
        installation: &DataplaneInstallation,
        row: &TenantRow,
    ) -> Arc<Tenant> {
        let (id, slug, place) = (row.id.clone(), row.slug.clone(), Place::of(row));
        if let Some(kept) = before.get(&slug).filter(|old| old.id == id && old.place == place) {
            return kept.clone();
        }
        let login = installation.auth(&id, place.endpoint.as_ref(), &place.database);
        Arc::new(Tenant::new(id, slug, place, login, self.lane, self.tasks.clone(), self.wake.clone()))
    }

    fn start_to_catch_up(self: &Arc<Self>, tenant: &Arc<Tenant>, generation: i64) {
        let up_to_date = tenant.was_tried() && tenant.generation().is_some_and(|served| generation <= served);
        if up_to_date || !tenant.begin_to_catch_up() {
            return;
        }
        let tenant = tenant.clone();
        // A database that does not answer is tried at the next look.
        self.tasks.start(async move { tenant.catch_up(generation).await });
    }

    fn all(&self) -> Option<Arc<Map>> {
        self.tenants.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
