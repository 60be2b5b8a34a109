//! Benchmarks that run by themselves only: each sets a stage of its own.

pub(crate) mod abuse;
pub(crate) mod events;
pub(crate) mod exports;
pub(crate) mod reconcile;
pub(crate) mod revoked;
pub(crate) mod scale;
pub(crate) mod schemas;
mod steady;
pub(crate) mod unknown_tenants;
pub(crate) mod webhooks;
