//! Functions and procedures, called over HTTP.

mod attacks;
mod ended;
mod errors;
mod fixture;
mod many;
mod own_role;
mod revoked;
mod routines;
mod state;
mod values;
