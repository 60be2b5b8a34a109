//! What every program of Rowgate has: settings, log lines, metrics as text, signals. No HTTP in here.

pub mod database_url;
pub mod log;
pub mod metrics;
pub mod settings;
pub mod signals;
pub mod tls;
