//! The HTTP client: addresses, one request with its retries, and what a refusal says.

pub(crate) mod address;
pub(crate) mod client;
pub(crate) mod connector;
pub(crate) mod problem;
pub(crate) mod request;
pub(crate) mod retry;
