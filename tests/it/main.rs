//! One binary for every end-to-end test.

mod control;
mod edits;
mod launcher;
mod paging;
mod plan;
mod ready;
mod revocation;
mod roles;
mod shop;
mod standalone;
mod tidy;
mod wire;
