//! The only crate that opens a connection to PostgreSQL.
//!
//! `wire` is the hot path: one batch, one round trip. Everything else uses sqlx through `connect::session`: `control` for the
//! tables of the control database, `tenant` for those of schema `dl` in the database of a tenant, `introspect` for what a plan
//! compares, `catalog` for what requests are resolved against.

pub mod catalog;
pub mod connect;
pub mod control;
pub mod failure;
pub mod hardening;
pub mod introspect;
pub mod tenant;
pub mod undo;
pub mod wire;
