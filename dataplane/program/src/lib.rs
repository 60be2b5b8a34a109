//! What every program of Rowgate needs: settings, log lines, metrics as text, signals, new identifiers. It knows no HTTP.

pub mod database_url;
pub mod entropy;
pub mod log;
pub mod metrics;
pub mod settings;
pub mod signals;
pub mod tls;
