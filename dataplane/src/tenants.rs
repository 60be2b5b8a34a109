//! What this replica serves: the tenants, the catalog of each, and the loop that follows the control database.

pub(crate) mod availability;
pub(crate) mod built_cache;
pub(crate) mod call_activity;
pub(crate) mod event_tail;
pub mod freshness;
pub(crate) mod load_backoff;
pub(crate) mod long_lists;
pub mod registry;
pub mod replica;
pub mod revoked_sessions;
pub(crate) mod snapshot;
pub mod tenant;
