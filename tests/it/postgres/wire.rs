//! The wire client against a real PostgreSQL: keys, sessions, errors, connections, and values as JSON.

mod abort;
pub(crate) mod connections;
pub(crate) mod encoders;
mod errors;
mod fixture;
mod keys;
mod long;
mod nested;
mod nested_batch;
mod queries;
mod session;
mod writes;
