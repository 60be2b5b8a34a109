//! What goes for good: databases with their roles, what is left of those that are gone, and keys whose resource is gone.

pub(crate) mod remains;
pub mod retained;
pub(crate) mod revocation;
