//! What is built of a catalog for one permission set: once, shared by the keys of equal rights, and bounded in bytes.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rowgate_core::name::Ulid;
use rowgate_core::problem::Problem;
use tokio::sync::{OnceCell, Semaphore};

use crate::tenants::snapshot::Snapshot;

/// So many are built at once: a new catalog of many keys leaves the other processors to requests.
const MAX_CONCURRENT_BUILDS: usize = 1;

/// Something that is kept as long as there is room.
pub(crate) trait Built: Send + Sync + 'static {
    /// About how many bytes it takes.
    fn n_bytes(&self) -> usize;
}

/// Whose: the tenant, and the role that holds the grants.
type Owner = (Ulid, Option<String>);

struct Entry<T> {
    /// Of another catalog than the one that is served: built again. It keeps the address from being given to another.
    snapshot: Weak<Snapshot>,
    built: Arc<OnceCell<Arc<T>>>,
    used: u64,
}

struct Entries<T> {
    by_owner: HashMap<Owner, Entry<T>>,
    /// Counts the uses, so that the oldest is known.
    n_uses: u64,
}

/// Of all tenants of a replica.
pub(crate) struct BuiltCache<T> {
    entries: Mutex<Entries<T>>,
    builds: Semaphore,
    max_bytes: usize,
}

impl<T: Built> BuiltCache<T> {
    pub(crate) fn new(max_bytes: usize) -> BuiltCache<T> {
        let entries = Mutex::new(Entries { by_owner: HashMap::new(), n_uses: 0 });
        BuiltCache { entries, builds: Semaphore::new(MAX_CONCURRENT_BUILDS), max_bytes }
    }

    #[cfg(test)]
    pub(crate) fn n_kept(&self) -> usize {
        self.entries.lock().by_owner.len()
    }

    /// That of a permission set, built where there is none of this catalog. `set_role`: the role that holds the grants.
    pub(crate) async fn get(
        &self,
        tenant: &Ulid,
        snapshot: &Arc<Snapshot>,
        set_role: Option<&String>,
        build: impl FnOnce(&Snapshot) -> Result<T, Problem> + Send + 'static,
    ) -> Result<Arc<T>, Problem> {
        let built = self.entry((tenant.clone(), set_role.cloned()), snapshot);
        if let Some(built) = built.get() {
            return Ok(built.clone());
        }
        let building = async || {
            let _permit = self.builds.acquire().await.map_err(|_| Problem::internal())?;
            let snapshot = snapshot.clone();
            // off the threads that answer requests: that of a large catalog takes a tenth of a second and more
            let task = tokio::task::spawn_blocking(move || build(&snapshot));
            task.await.map_err(|_| Problem::internal())?.map(Arc::new)
        };
        let built = built.get_or_try_init(building).await?.clone();
        self.shrink();
        Ok(built)
    }

    fn entry(&self, owner: Owner, snapshot: &Arc<Snapshot>) -> Arc<OnceCell<Arc<T>>> {
        let mut entries = self.entries.lock();
        entries.n_uses += 1;
        let used = entries.n_uses;
        let new = || Entry { snapshot: Arc::downgrade(snapshot), built: Arc::default(), used };
        let entry = entries.by_owner.entry(owner).or_insert_with(new);
        if !std::ptr::eq(entry.snapshot.as_ptr(), Arc::as_ptr(snapshot)) {
            *entry = new();
        }
        entry.used = used;
        entry.built.clone()
    }

    /// Drops those of catalogs that are gone, and those used longest ago, until the rest is within the bound.
    fn shrink(&self) {
        let mut entries = self.entries.lock();
        entries.by_owner.retain(|_, entry| 0 < entry.snapshot.strong_count());
        let size = |entry: &Entry<T>| entry.built.get().map_or(0, |built| built.n_bytes());
        let mut n_bytes: usize = entries.by_owner.values().map(size).sum();
        while self.max_bytes < n_bytes {
            let built = entries.by_owner.iter().filter(|(_, entry)| entry.built.initialized());
            let Some(oldest) = built.min_by_key(|(_, entry)| entry.used) else { return };
            let owner = oldest.0.clone();
            n_bytes -= entries.by_owner.remove(&owner).as_ref().map_or(0, size);
        }
    }
}
