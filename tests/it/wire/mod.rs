//! The wire client against a real PostgreSQL: keys, sessions, errors, connections, and values as JSON.

mod abort;
mod connect;
pub(crate) mod encoders;
mod errors;
mod fixture;
mod keys;
mod long;
mod pooler;
mod session;
mod standby;
mod tls;
mod writes;
