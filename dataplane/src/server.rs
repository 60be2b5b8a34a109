//! What holds for any request, whichever surface answers it: connections, limits, shared headers, logs and metrics.

pub mod access_log;
pub mod body_memory;
pub mod compress;
pub mod connection;
pub mod cors;
pub mod limits;
pub mod listen;
pub mod metrics;
pub mod path;
pub mod proxies;
pub mod respond;
pub mod trace;
