//! Desired versus actual: a folder or a cluster says what should be, PostgreSQL what is, a plan what to do.
//!
//! No Kubernetes client and no HTTP in here. [`plan`] and `status` are pure; `apply` and `run` await.

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
