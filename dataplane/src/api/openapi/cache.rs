//! Documents that were made: see [`BuiltCache`].

use std::sync::Arc;

use bytes::Bytes;
use rowgate_core::entity_tag::Basis;
use rowgate_core::name::{TenantSlug, Ulid};
use rowgate_core::problem::Problem;
use rowgate_sql::catalog::Scope;

use crate::api::openapi::document;
use crate::api::surface::Surfaces;
use crate::tenants::built_cache::{Built, BuiltCache};
use crate::tenants::snapshot::Snapshot;

/// Bytes of all documents together: those of some thirty tenants of 50 entities.
const MAX_BYTES: usize = 32 << 20;

/// A document without its beginning.
pub struct Document {
    pub(super) rest: Bytes,
    pub(super) basis: Basis,
}

/// The documents of all tenants of a replica.
pub struct DocumentCache {
    pub(super) built: BuiltCache<Document>,
    surfaces: Surfaces,
}

impl DocumentCache {
    /// For a replica that serves these.
    #[must_use]
    pub fn new(surfaces: Surfaces) -> DocumentCache {
        DocumentCache::bounded(surfaces, MAX_BYTES)
    }

    pub(super) fn bounded(surfaces: Surfaces, max_bytes: usize) -> DocumentCache {
        DocumentCache { built: BuiltCache::new(max_bytes), surfaces }
    }

    /// The document of a permission set. `set_role`: the role that holds the grants.
    pub(super) async fn get(
        &self,
        (tenant, slug): (&Ulid, &TenantSlug),
        snapshot: &Arc<Snapshot>,
        set_role: Option<&String>,
        scope: Arc<Scope>,
    ) -> Result<Arc<Document>, Problem> {
        let (slug, surfaces) = (slug.clone(), self.surfaces);
        let build = move |snapshot: &Snapshot| {
            Ok(Document::new(document::rest_of(&slug, &snapshot.catalog, &scope, surfaces)))
        };
        self.built.get(tenant, snapshot, set_role, build).await
    }
}

impl Built for Document {
    fn n_bytes(&self) -> usize {
        self.rest.len()
    }
}

impl Document {
    fn new(rest: String) -> Document {
        let basis = Basis::new([rest.as_bytes()]);
        Document { rest: Bytes::from(rest), basis }
    }
}
