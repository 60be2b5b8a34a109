//! From a request whose key is known to its outcome: statements asked, asked again, and what a failure means.
//!
//! Nothing here knows `api`, axum or an address: a surface parses a request, lends its words and makes its response.

pub mod call;
pub(crate) mod nested;
pub mod post;
pub(crate) mod problem;
pub mod read;
pub mod remaining_rows;
pub(crate) mod retry;
pub mod row_version;
pub mod sql;
pub(crate) mod value_diagnosis;
pub mod wording;
pub mod write;
