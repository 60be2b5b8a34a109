//! A catalog with the keys seen while it was current.

use std::sync::Arc;
use std::time::Instant;

use rowgate_core::secret::Credential;
use rowgate_pg::catalog::fingerprint::Watched;
use rowgate_pg::tenant::keys::Found;
use rowgate_sql::catalog::{Catalog, Scope};

use crate::auth::key_cache::KeyCache;
use crate::tenants::freshness::{Freshness, FreshnessCheck};
use crate::tenants::long_lists::LongLists;
pub(crate) use type_cache::TypeCache;

mod type_cache;

/// A catalog and the keys seen while it was current. Replaced as a whole, so that no key outlives its generation here.
pub struct Snapshot {
    pub catalog: Catalog,
    pub(crate) watched: Arc<Watched>,
    pub(crate) freshness: Freshness,
    pub(crate) keys: KeyCache,
    pub(crate) long_lists: LongLists,
    pub(crate) types: TypeCache,
}

impl Snapshot {
    /// What `key` may do. A key whose permission set is not in the catalog may do nothing.
    #[must_use]
    pub fn scope(&self, key: &Found) -> Arc<Scope> {
        let set = key.set_role.as_ref().and_then(|set| self.catalog.scopes.get(set));
        set.cloned().unwrap_or_default()
    }

    /// What is to be asked along with a request now, and the turn to [`Snapshot::confirm`] when nothing has changed.
    pub fn due_check(&self) -> Option<(Arc<Watched>, FreshnessCheck)> {
        Some((self.watched.clone(), self.freshness.due_check(Instant::now())?))
    }

    /// The tables were those of the catalog when that turn was taken.
    pub fn confirm(&self, check: FreshnessCheck) {
        self.freshness.confirm(check);
    }

    /// Drops a key that the database no longer knows.
    pub fn forget(&self, credential: &Credential) {
        self.keys.forget(credential);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rowgate_core::name::Ulid;

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
        let (keys, long_lists, types) = (KeyCache::default(), LongLists::default(), TypeCache::default());
        Snapshot { catalog, watched, freshness, keys, long_lists, types }
    }

    #[test]
    fn a_key_without_a_known_permission_set_may_do_nothing() {
        let mut catalog = Catalog::default();
        let orders = "orders".parse().expect("a name");
        let scope = Scope {
            entities: Arc::new(HashMap::from([(orders, rowgate_sql::catalog::Rights::default())])),
            ..Scope::default()
        };
        catalog.scopes.insert("set_a".to_owned(), Arc::new(scope));
        let snapshot = snapshot(catalog);
        assert_eq!(snapshot.scope(&found(Some("set_a"))).entities.len(), 1);
        assert_eq!(snapshot.scope(&found(Some("set_b"))).entities.len(), 0);
        assert_eq!(snapshot.scope(&found(None)).entities.len(), 0);
    }
}
