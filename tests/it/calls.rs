//! Functions and procedures, called over HTTP.

mod attacks;
mod ended;
mod errors;
mod fixture;
mod many;
mod revoked;
mod state;
mod values;
