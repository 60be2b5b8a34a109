//! A tenant with relationships of every kind, twelve keys, and what each may name.

pub(crate) mod drawn;
pub(crate) mod manifest;
pub(crate) mod rights;
pub(crate) mod tables;
