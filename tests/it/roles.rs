//! What the database is after reconciling: who may do what, and who may reconcile it.

mod forbidden;
mod many;
mod refused;
mod turns;
