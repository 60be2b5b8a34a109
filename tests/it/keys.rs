//! Who may come in: roles, tokens, rotation, revocation, and secrets that appear nowhere else.

mod access;
mod canary;
mod revocation;
mod roles;
pub(crate) mod rotation;
pub(crate) mod tokens;
