//! What deletes for good: databases with their roles, leftovers of deleted tenants, and keys whose resource is gone.

pub(crate) mod adopted;
pub(crate) mod migrations;
pub(crate) mod remains;
pub mod retained;
pub(crate) mod revocation;
