//! One binary for every end-to-end test.

mod access;
mod access_log;
mod control;
mod differential;
mod edge;
mod edits;
mod hostile;
mod http;
mod launcher;
mod limits;
mod metrics;
mod owners_code;
mod paging;
mod plan;
mod ready;
mod refusals;
mod revocation;
mod roles;
mod rotation;
mod shop;
mod standalone;
mod streaming;
mod tidy;
mod tokens;
mod values;
mod wire;
