//! Statements that make the database what the manifests say: roles, grants, policies, and the rows of `dl`.
//!
//! Pure: each function gives one statement. Who runs it, and in which order, is the plan's business (rowgate-reconcile).

pub mod capture;
pub mod grants;
pub mod policies;
pub mod protection;
pub mod records;
pub mod roles;
pub mod subscriptions;
pub mod triggers;
pub mod views;
