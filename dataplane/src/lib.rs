//! The data plane: REST over each tenant's PostgreSQL, answered as the role of the caller's key.
//!
//! A request enters by [`server`], which holds what is true of any request. [`api`] finds its route and parses it, [`auth`]
//! finds its key, [`tenants`] its tenant's catalog and connections, and [`execute`] runs the statement and decides the
//! outcome. [`app`] starts and ends all of it; [`cli`] holds the commands that do one thing and end.

pub mod app;
pub mod config;

pub mod api;
pub mod auth;
pub mod delivery;
pub mod execute;
pub mod export_jobs;
pub mod server;
pub mod tenants;

pub mod cli;
pub mod standalone;
