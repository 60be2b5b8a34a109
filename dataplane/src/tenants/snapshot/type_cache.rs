//! Types that statements of API keys took or gave, as they are in the tenant's database while one catalog is served.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use rowgate_pg::catalog::types;
use rowgate_sql::catalog::FieldType;

use super::Snapshot;
use crate::tenants::tenant::Tenant;

/// More than the statements of a tenant have; `numeric(12,2)` and `numeric(10,2)` are two.
const MAX_TYPES: usize = 10_000;

/// An oid of `pg_type` and a modifier, -1 for none.
pub(crate) type TypeId = (u32, i32);

/// The types seen so far. A catalog that is loaded again begins with none.
#[derive(Default)]
pub(crate) struct TypeCache(RwLock<HashMap<TypeId, Arc<FieldType>>>);

impl TypeCache {
    fn known(&self, ids: &[TypeId]) -> Option<Vec<Arc<FieldType>>> {
        let types = self.0.read();
        ids.iter().map(|id| types.get(id).cloned()).collect()
    }

    fn note(&self, ids: &[TypeId], found: &[Arc<FieldType>]) {
        let mut types = self.0.write();
        if MAX_TYPES < types.len() + ids.len() {
            types.clear();
        }
        types.extend(ids.iter().copied().zip(found.iter().cloned()));
    }
}

impl Snapshot {
    /// The types with these ids, in their order. Those that are not known yet are looked up.
    pub(crate) async fn types(
        &self,
        tenant: &Tenant,
        ids: &[TypeId],
    ) -> Result<Vec<Arc<FieldType>>, rowgate_core::problem::Problem> {
        if let Some(known) = self.types.known(ids) {
            return Ok(known);
        }
        let (look_ups, wanted) = (tenant.look_ups.clone(), ids.to_vec());
        let load = async move {
            let mut connection = look_ups.acquire().await?;
            let loaded = types::load(&mut connection, &wanted).await;
            connection.done(loaded)
        };
        let found: Vec<_> = tenant.run_detached(load).await?.into_iter().map(Arc::new).collect();
        self.types.note(ids, &found);
        Ok(found)
    }
}
