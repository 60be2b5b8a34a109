//! One key with the catalog that it belongs to: what a request is made with.

use std::sync::Arc;

use rowgate_pg::tenant::keys::Found;

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
            && self.key.secret == other.key.secret
    }
}
