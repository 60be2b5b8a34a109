//! The tables of the control database, a module each, and the installation that they belong to.

pub mod exports;
pub mod installation;
pub mod last_used;
pub mod leader;
pub mod migrate;
pub mod rebinds;
pub mod replicas;
pub mod retained;
pub mod servers;
pub mod signing;
pub mod subscriptions;
pub mod tenants;
