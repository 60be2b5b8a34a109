//! Signing keys that follow one another, and when a key was last used: through HTTP and files. Time is never waited for:
//! recorded times are moved by SQL.

pub(crate) mod fixture;
mod signing;
pub(crate) mod used;
