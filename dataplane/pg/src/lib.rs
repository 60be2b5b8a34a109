//! The only crate that opens a connection to PostgreSQL.
//!
//! `wire` is the hot path: one batch, one round trip. Everything else uses sqlx through `session`.

pub mod bounds;
pub mod failure;
mod gate;
pub mod login;
pub mod login_failure;
pub mod session;
pub mod signing;

pub mod installation;
pub mod leader;
pub mod migrate;
pub mod replicas;
pub mod retained;
pub mod tenants;
pub mod tls;

pub mod actual;
pub mod backends;
pub mod declared;
pub mod introspect;

pub mod catalog_load;
pub mod fingerprint;
pub mod key_uses;
pub mod keys;
pub mod locks;
pub mod look_ups;

pub mod wire;
