//! Tenants on several PostgreSQL servers under one installation: `spec.database.serverSecretRef`.

mod changed;
pub(crate) mod fixture;
mod moved;
mod refused;
mod served;
