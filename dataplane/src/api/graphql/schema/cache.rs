//! Schemas that were built: see [`BuiltCache`].

use std::sync::Arc;

use rowgate_core::name::Ulid;
use rowgate_core::problem::Problem;
use rowgate_sql::catalog::{Protocol, Scope};

use super::Schema;
use crate::tenants::built_cache::{Built, BuiltCache};
use crate::tenants::snapshot::Snapshot;

/// Bytes of all schemas together.
const MAX_BYTES: usize = 256 << 20;

/// The schemas of all tenants of a replica.
pub struct SchemaCache(BuiltCache<Schema>);

impl Default for SchemaCache {
    fn default() -> SchemaCache {
        SchemaCache(BuiltCache::new(MAX_BYTES))
    }
}

impl SchemaCache {
    /// The schema of a permission set. `set_role`: the role that holds the grants.
    pub(crate) async fn get(
        &self,
        tenant: &Ulid,
        snapshot: &Arc<Snapshot>,
        set_role: Option<&String>,
        scope: &Scope,
    ) -> Result<Arc<Schema>, Problem> {
        let scope = Arc::new(scope.on(Protocol::GraphQl));
        let build = move |snapshot: &Snapshot| {
            Schema::new(&snapshot.catalog, scope, snapshot.catalog.limits.graphql_introspection)
        };
        self.0.get(tenant, snapshot, set_role, build).await
    }
}

impl Built for Schema {
    fn n_bytes(&self) -> usize {
        self.n_bytes
    }
}
