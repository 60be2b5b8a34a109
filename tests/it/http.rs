//! HTTP as callers meet it, whatever they ask: headers, limits, long answers, logs and metrics, hostile clients and outages.

mod access_log;
pub(crate) mod conventions;
pub(crate) mod edge;
mod fault_injection;
pub(crate) mod hostile;
mod limits;
mod metrics;
mod streaming;
