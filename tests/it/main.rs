//! One binary for every end-to-end test.

mod control;
mod launcher;
mod tidy;
mod wire;
