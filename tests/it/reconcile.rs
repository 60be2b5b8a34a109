//! From manifests to a database: plans, passes, statuses and their messages, on both sources.

pub(crate) mod acme;
mod honest_status;
mod lookups;
mod migrations;
mod owners_code;
mod ownership;
mod plan;
mod ready;
mod records;
pub(crate) mod scenarios;
mod stalled;
mod typing;
