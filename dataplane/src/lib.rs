//! The data plane: REST over each tenant's PostgreSQL, answered as the role of the caller's key; and the standalone mode.

pub mod config;
pub mod next_link;
pub mod path;
pub mod respond;
pub mod telemetry;

pub mod standalone;
