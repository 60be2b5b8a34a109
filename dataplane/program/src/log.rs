//! Log lines: JSON, or text on a terminal.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    Text,
}

/// Starts logging to standard error. `ROWGATE_LOG` filters, as `info,rowgate_pg=debug`. A second call does nothing,
/// so that several servers can run in one test process.
///
/// Notices of PostgreSQL are left out: a tenant's own script or function writes them, with values in them. So is
/// what the Kubernetes client says by itself: each of its failures comes back to us, and is told with what it meant.
pub fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_env("ROWGATE_LOG").unwrap_or_else(|_| {
        EnvFilter::new("info,sqlx=warn,sqlx::postgres::notice=off,kube_runtime=error,kube_client=off")
    });
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // An error means that logging was started before, which is what the call wants.
    let _started = match format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).try_init(),
        LogFormat::Text => lines.try_init(),
    };
}

/// Reads the name of a format.
pub fn format(text: &str) -> Result<LogFormat, String> {
    match text {
        "json" => Ok(LogFormat::Json),
        "text" => Ok(LogFormat::Text),
        _ => Err("is no format of log lines; give json or text".to_owned()),
    }
}

/// Text for people, JSON for everything else.
#[must_use]
pub fn default_format() -> &'static str {
    if std::io::stderr().is_terminal() { "text" } else { "json" }
}
