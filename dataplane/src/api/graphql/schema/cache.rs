//! Schemas that were built: one for each catalog and permission set, shared by the keys of equal rights, and bounded in bytes.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rowgate_core::name::Ulid;
use rowgate_core::problem::Problem;
use rowgate_sql::catalog::{Protocol, Scope};
use tokio::sync::{OnceCell, Semaphore};

use super::Schema;
use crate::tenants::snapshot::Snapshot;

/// Bytes of all schemas together.
const MAX_BYTES: usize = 256 << 20;
/// So many are built at once: a new catalog of many keys leaves the other processors to requests.
const MAX_CONCURRENT_BUILDS: usize = 1;

/// Whose schema: the tenant, and the role that holds the grants.
type Owner = (Ulid, Option<String>);

struct Entry {
    /// Of another catalog than the one that is served: built again. It keeps the address from being given to another.
    snapshot: Weak<Snapshot>,
    built: Arc<OnceCell<Arc<Schema>>>,
    used: u64,
}

#[derive(Default)]
struct Entries {
    by_owner: HashMap<Owner, Entry>,
    /// Counts the uses, so that the oldest is known.
    n_uses: u64,
}

/// The schemas of all tenants of a replica.
pub struct SchemaCache {
    entries: Mutex<Entries>,
    builds: Semaphore,
}

impl Default for SchemaCache {
    fn default() -> SchemaCache {
        SchemaCache { entries: Mutex::default(), builds: Semaphore::new(MAX_CONCURRENT_BUILDS) }
    }
}

impl SchemaCache {
    /// The schema of a permission set, built where there is none of this catalog. `set_role`: the role that holds the grants.
    pub(crate) async fn get(
        &self,
        tenant: &Ulid,
        snapshot: &Arc<Snapshot>,
        set_role: Option<&String>,
        scope: &Scope,
    ) -> Result<Arc<Schema>, Problem> {
        let built = self.entry((tenant.clone(), set_role.cloned()), snapshot);
        if let Some(schema) = built.get() {
            return Ok(schema.clone());
        }
        let build = async || {
            let _permit = self.builds.acquire().await.map_err(|_| Problem::internal())?;
            let (snapshot, scope) = (snapshot.clone(), Arc::new(scope.on(Protocol::GraphQl)));
            // off the threads that answer requests: a large one takes a good part of a second
            let task = tokio::task::spawn_blocking(move || {
                let introspects = snapshot.catalog.limits.graphql_introspection;
                Schema::new(&snapshot.catalog, scope, introspects)
            });
            task.await.map_err(|_| Problem::internal())?.map(Arc::new)
        };
        let schema = built.get_or_try_init(build).await?.clone();
        self.shrink();
        Ok(schema)
    }

    fn entry(&self, owner: Owner, snapshot: &Arc<Snapshot>) -> Arc<OnceCell<Arc<Schema>>> {
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

    /// Drops the schemas of catalogs that are gone, and those used longest ago, until the rest is within the bound.
    fn shrink(&self) {
        let mut entries = self.entries.lock();
        entries.by_owner.retain(|_, entry| 0 < entry.snapshot.strong_count());
        let size = |entry: &Entry| entry.built.get().map_or(0, |schema| schema.n_bytes);
        let mut n_bytes: usize = entries.by_owner.values().map(size).sum();
        while MAX_BYTES < n_bytes {
            let built = entries.by_owner.iter().filter(|(_, entry)| entry.built.initialized());
            let Some(oldest) = built.min_by_key(|(_, entry)| entry.used) else { return };
            let owner = oldest.0.clone();
            n_bytes -= entries.by_owner.remove(&owner).as_ref().map_or(0, size);
        }
    }
}
