//! The data plane: REST over each tenant's PostgreSQL, answered as the role of the caller's key.
//!
//! A request goes through [`listen`], [`http`] (the table of routes), [`auth`] (whose key), [`reads`] and [`writes`]
//! (what the key may, as SQL, and the rows), [`calls`] (of functions and procedures) and [`respond`]. At the door stand [`proxies`], [`bounds`], [`cors`] and [`compress`].
//! Beside them [`replica`] follows the control database and keeps [`catalogs`] current. [`app`] starts and ends all of it.

pub mod app;
pub mod config;

pub mod entity_tags;
pub mod http;
mod misfits;
pub mod next_link;
pub mod probes;
pub mod reads;
pub mod sent;
pub mod streamed;
mod told;
mod tries;
pub mod writes;

pub mod calls;

pub mod auth;
pub mod cli;
pub mod server;
pub mod standalone;
pub mod tenants;
