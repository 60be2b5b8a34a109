//! The bounds of the contract, from outside.

mod rate;
mod strangers;
