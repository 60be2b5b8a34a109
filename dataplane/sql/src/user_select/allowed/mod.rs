//! What a SELECT may name of PostgreSQL's own: everything has to be on a list.

pub(super) mod functions;
pub(super) mod operators;
pub(super) mod types;
