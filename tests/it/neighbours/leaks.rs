//! What one tenant may learn of others: nothing.

mod names;
mod unknown_tenants;
mod views;
