//! Layers over a client's TCP connection, below HTTP: how it closes, when a write times out, what a non-HTTP client reads.

pub(crate) mod lingering_close;
pub(crate) mod malformed_requests;
pub(crate) mod write_timeout;
