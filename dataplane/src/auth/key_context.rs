//! One key with the catalog that it belongs to: what a request is made with.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rowgate_core::secret::Credential;
use rowgate_pg::tenant::keys::Found;
use rowgate_pg::wire::{Ask, Query, Values};
use rowgate_sql::shape::Shape;
use rowgate_sql::text::{Bind, Ident, Sql};

use crate::auth::last_used::LastUsed;
use crate::auth::rate_limit::RateLimit;
use crate::tenants::snapshot::Snapshot;

/// A key record with the catalog that it belongs to. What it may do is the database's to say, on every request.
#[derive(Clone)]
pub struct KeyContext {
    pub snapshot: Arc<Snapshot>,
    pub key: Arc<Found>,
    /// `None` where the tenant has no rate limit.
    pub(crate) rate_limit: Option<Arc<RateLimit>>,
    pub last_used: Arc<LastUsed>,
    /// The database gave the record during this request.
    pub fresh: bool,
}

impl KeyContext {
    /// Whether the same record of the same catalog stands behind both.
    #[must_use]
    pub fn is_same(&self, other: &KeyContext) -> bool {
        Arc::ptr_eq(&self.snapshot, &other.snapshot)
            && self.key.role == other.key.role
            && self.key.set_role == other.key.set_role
    }

    /// Asks for nothing but the key: whether it lives and has the role that it is known with.
    pub(crate) fn check(&self, credential: &Credential) -> Ask {
        let mut nothing = Sql::new();
        nothing.lit("select");
        Ask {
            credential: credential.clone(),
            key: self.key.clone(),
            role: self.key.role.clone(),
            statement_timeout_ms: self.snapshot.catalog.limits.statement_timeout_ms,
            watched: None,
            sql: nothing,
            shape: Arc::new(Shape { columns: Vec::new(), position: Vec::new(), count: None }),
            nested: None,
        }
    }

    /// SQL of the key's own, which gives one value within the tenant's time for a statement. Names without a schema are looked
    /// for in `public` and then in the schemas of entities, whichever of these the key may use.
    pub(crate) fn query(&self, text: Arc<str>, binds: Vec<Bind>) -> Query {
        let catalog = &self.snapshot.catalog;
        let exposed: BTreeSet<&Ident> = catalog.entities.values().map(|entity| &entity.schema).collect();
        let public = Ident::new("public");
        let others = exposed.into_iter().filter(|schema| schema.as_str() != "public").cloned();
        let statement_timeout_ms = catalog.limits.statement_timeout_ms;
        Query {
            key: self.key.id.clone(),
            role: self.key.role.clone(),
            statement_timeout_ms,
            limit: Duration::from_millis(statement_timeout_ms.into()),
            schemas: public.into_iter().chain(others).collect(),
            text,
            binds,
            values: Values::One,
            max_bytes: 1 << 20,
        }
    }
}
