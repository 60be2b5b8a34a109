//! What the database is after reconciling: who may do what, and who may reconcile it.

mod exclusive;
mod forbidden;
mod left;
mod many;
mod refused;
