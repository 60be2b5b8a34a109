//! `rowgate`, the command line of API consumers: the program itself against a data plane.

mod failures;
mod fixture;
mod get;
mod profiles;
mod query;
mod tail;
mod terminal;
mod webhooks;
