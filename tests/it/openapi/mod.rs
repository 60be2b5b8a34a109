//! The document of a key, held against what the key may do, by validators and by clients that are generated from it.

mod clients;
mod documents;
pub(crate) mod fixture;
mod requests;
mod truths;
