//! One binary for every end-to-end test.

mod launcher;
mod tidy;
mod wire;
