//! `rowgate`, the command line for those who use an API: rows, SQL, exports, events and webhooks over HTTP.

pub mod cli;
mod commands;
mod context;
mod failure;
mod http;
mod interrupt;
mod output;
mod profiles;
#[cfg(test)]
mod script;
mod sse;
