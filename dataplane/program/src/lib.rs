//! What every program of Rowgate needs: settings, log lines, metrics as text, signals, new identifiers. It knows no HTTP.

pub mod entropy;
pub mod log;
pub mod metrics;
pub mod settings;
pub mod signals;

pub use rowgate_pg::connect::{database_url, tls_settings as tls};
