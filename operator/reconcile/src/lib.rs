//! Desired versus actual: a folder or a cluster declares what should be, PostgreSQL holds what is, a plan brings them together.
//!
//! `controller` is the loop; it reads a [`source`] and runs a `pass` over each tenant that is due. A pass turns resources
//! into [`desired`] values, makes a [`plan`] from them, runs it through `apply`, and reports `status`. `secrets` holds what
//! belongs to the Secrets of keys, `servers` the PostgreSQL servers of tenants, [`removal`] what deletes for good, `entropy` the clock and randomness.
//!
//! No Kubernetes client and no HTTP in here. [`plan`] and `status` are pure; `apply`, `pass` and `controller` await.

pub mod desired;
pub mod mirrors;
pub mod plan;
pub mod removal;
pub mod source;

mod apply;
mod controller;
pub mod entropy;
mod pass;
mod public_urls;
mod secrets;
mod servers;
mod status;

pub use controller::{Ended, Settings, run};
pub use public_urls::PublicUrls;
pub use servers::ServerNamespaces;
