//! Documents that were made: one for each catalog and permission set, shared by the keys of equal rights, and bounded in bytes.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use rowgate_core::entity_tag::Basis;
use rowgate_core::name::{TenantSlug, Ulid};
use rowgate_core::problem::Problem;
use rowgate_sql::catalog::Scope;
use tokio::sync::{OnceCell, Semaphore};

use crate::api::openapi::document;
use crate::api::surface::Surfaces;
use crate::tenants::snapshot::Snapshot;

/// Bytes of all documents together: those of some thirty tenants of 50 entities.
const MAX_BYTES: usize = 32 << 20;
/// So many are made at once: a new catalog of many keys leaves the other processors to requests.
const MAX_CONCURRENT_BUILDS: usize = 1;

/// A document without its beginning.
pub struct Document {
    pub(super) rest: Bytes,
    pub(super) basis: Basis,
}

/// Whose document: the tenant, and the role that holds the grants.
type Owner = (Ulid, Option<String>);

struct Entry {
    /// Of another catalog than the one that is served: made again. It keeps the address from being given to another.
    snapshot: Weak<Snapshot>,
    made: Arc<OnceCell<Arc<Document>>>,
    used: u64,
}

#[derive(Default)]
struct Entries {
    by_owner: HashMap<Owner, Entry>,
    /// Counts the uses, so that the oldest is known.
    n_uses: u64,
}

/// The documents of all tenants of a replica.
pub struct DocumentCache {
    entries: Mutex<Entries>,
    builds: Semaphore,
    max_bytes: usize,
    surfaces: Surfaces,
}

impl DocumentCache {
    /// For a replica that serves these.
    #[must_use]
    pub fn new(surfaces: Surfaces) -> DocumentCache {
        DocumentCache::bounded(surfaces, MAX_BYTES)
    }

    pub(super) fn bounded(surfaces: Surfaces, max_bytes: usize) -> DocumentCache {
        let builds = Semaphore::new(MAX_CONCURRENT_BUILDS);
        DocumentCache { entries: Mutex::default(), builds, max_bytes, surfaces }
    }

    #[cfg(test)]
    pub(super) fn n_documents(&self) -> usize {
        self.entries.lock().by_owner.len()
    }

    /// The document of a permission set, made where there is none of this catalog. `set_role`: the role that holds the grants.
    pub(super) async fn get(
        &self,
        (tenant, slug): (&Ulid, &TenantSlug),
        snapshot: &Arc<Snapshot>,
        set_role: Option<&String>,
        scope: Arc<Scope>,
    ) -> Result<Arc<Document>, Problem> {
        let made = self.entry((tenant.clone(), set_role.cloned()), snapshot);
        if let Some(document) = made.get() {
            return Ok(document.clone());
        }
        let build = async || {
            let _permit = self.builds.acquire().await.map_err(|_| Problem::internal())?;
            let (slug, snapshot, surfaces) = (slug.clone(), snapshot.clone(), self.surfaces);
            // off the threads that answer requests: a large one takes a tenth of a second
            let task = tokio::task::spawn_blocking(move || {
                Document::new(document::rest_of(&slug, &snapshot.catalog, &scope, surfaces))
            });
            task.await.map(Arc::new).map_err(|_| Problem::internal())
        };
        let document = made.get_or_try_init(build).await?.clone();
        self.shrink();
        Ok(document)
    }

    fn entry(&self, owner: Owner, snapshot: &Arc<Snapshot>) -> Arc<OnceCell<Arc<Document>>> {
        let mut entries = self.entries.lock();
        entries.n_uses += 1;
        let used = entries.n_uses;
        let new = || Entry { snapshot: Arc::downgrade(snapshot), made: Arc::default(), used };
        let entry = entries.by_owner.entry(owner).or_insert_with(new);
        if !std::ptr::eq(entry.snapshot.as_ptr(), Arc::as_ptr(snapshot)) {
            *entry = new();
        }
        entry.used = used;
        entry.made.clone()
    }

    /// Drops the documents of catalogs that are gone, and those used longest ago, until the rest is within the bound.
    fn shrink(&self) {
        let mut entries = self.entries.lock();
        entries.by_owner.retain(|_, entry| 0 < entry.snapshot.strong_count());
        let size = |entry: &Entry| entry.made.get().map_or(0, |document| document.rest.len());
        let mut n_bytes: usize = entries.by_owner.values().map(size).sum();
        while self.max_bytes < n_bytes {
            let with_document = entries.by_owner.iter().filter(|(_, entry)| entry.made.initialized());
            let Some(oldest) = with_document.min_by_key(|(_, entry)| entry.used) else { return };
            let owner = oldest.0.clone();
            n_bytes -= entries.by_owner.remove(&owner).as_ref().map_or(0, size);
        }
    }
}

impl Document {
    fn new(rest: String) -> Document {
        let basis = Basis::new([rest.as_bytes()]);
        Document { rest: Bytes::from(rest), basis }
    }
}
