//! Tenants whose tables and views are written to.

pub(crate) mod rounding_keys;
pub(crate) mod tables;
pub(crate) mod tenant;
pub(crate) mod versioned_rows;
pub(crate) mod views;
