//! The SQL endpoint: what a SELECT gives, what it may not be, and that nothing in its text reaches further.

mod bounded;
mod escapes;
mod fixture;
mod hardening;
mod hidden;
mod keys;
mod limits;
mod refusals;
mod rows;
