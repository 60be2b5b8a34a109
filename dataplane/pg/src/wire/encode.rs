//! The values of an answer as their media type writes them.

pub(crate) mod json;
