//! The bounds of the contract, from outside.

mod rate;
mod unknown_keys;
