//! From a request whose key is known to its outcome: statements asked, asked again, and what a failure means.

pub mod call;
pub(crate) mod problem;
pub mod read;
pub(crate) mod retry;
pub(crate) mod value_diagnosis;
pub mod write;
pub mod write_problem;
