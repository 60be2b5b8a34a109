//! Desired versus actual: a folder or a cluster declares what should be, PostgreSQL holds what is, a plan says what to
//! do.
//!
//! No Kubernetes client and no HTTP in here. [`plan`] and `status` are pure; `apply`, `pass` and `controller` await.

pub mod desired;
pub mod plan;
pub mod removal;
pub mod source;

mod apply;
mod controller;
mod entropy;
mod pass;
mod secrets;
mod status;

pub use controller::{Ended, Settings, run};
