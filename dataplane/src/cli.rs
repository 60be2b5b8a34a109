//! Commands that do one thing and end, with nothing but the databases running. `main` names them.

pub mod rebind;
pub mod retained;
pub mod revoke;
pub mod rotate_signing_key;
mod table;
mod target;
