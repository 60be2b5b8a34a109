//! One binary for every end-to-end test.

mod adopted;
mod calls;
mod cli;
mod console;
mod events;
mod exports;
mod graphql;
pub(crate) mod http;
pub(crate) mod keys;
pub(crate) mod kubernetes;
mod migration_tools;
mod neighbours;
pub(crate) mod openapi;
pub(crate) mod postgres;
pub(crate) mod programs;
pub(crate) mod reads;
pub(crate) mod reconcile;
pub(crate) mod servers;
mod sql;
mod webhooks;
mod writes;
