//! Tokens through HTTP: what they open, when they die, and what is none.

pub(crate) mod clients;
mod dying;
mod forged;
mod shop;
mod using;
