//! One binary for every end-to-end test.

mod control;
mod launcher;
mod paging;
mod plan;
mod roles;
mod shop;
mod standalone;
mod tidy;
mod wire;
