//! The edge: what every answer carries, who is told what without a key, and what is done with what callers send.

pub(crate) mod compression;
mod cors;
mod headers;
pub(crate) mod limits;
mod no_http;
mod proxies;
pub(crate) mod raw;
