//! What the data plane answers: a table of routes, and one folder for each surface.

pub(crate) mod aggregates;
pub mod console;
pub(crate) mod events;
pub(crate) mod exports;
pub mod graphql;
pub mod openapi;
pub mod probes;
pub mod rest;
pub mod routes;
pub mod service;
pub(crate) mod sql;
pub mod surface;
pub(crate) mod tokens;
pub(crate) mod webhooks;
