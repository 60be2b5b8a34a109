//! What must hold for any text of a stranger: one function for each parser, which panics where it does not hold.
//!
//! `make fuzz` gives them what libFuzzer invents, and `make test` what lies in `seeds/`.

pub mod cursor;
pub mod filter;
pub mod key;
pub mod query;
pub mod token;

mod sql;
mod tenant;
