//! The operator: the reconcile loop of `rowgate-reconcile` with the Kubernetes API as its source.
//!
//! [`source`] reads what the cluster declares and writes the results back; [`lease`] lets one operator work at a time, and
//! [`tenure`] lets no other one write; [`run`] starts and ends all of it.

pub mod api;
pub mod config;
pub mod health;
pub mod lease;
pub mod meter;
pub mod roots;
pub mod run;
pub mod source;
pub mod tenure;
