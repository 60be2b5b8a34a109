//! The words of Rowgate as types: names, roles, secrets, cursors, problems.
//!
//! No IO, no async, no clock, no randomness: time and chance are arguments. Read in this order.

pub mod name;
pub mod role;

mod secrets;
pub use secrets::{derive, export_link, jwt, scram, secret, signing};

pub mod backoff;
pub mod cursor;
pub mod entity_tag;
pub mod nearest;
pub mod percent;
pub mod problem;
pub mod rate;
pub mod webhook;
pub mod yaml;
