//! One binary for every end-to-end test.

mod control;
mod launcher;
mod standalone;
mod tidy;
mod wire;
