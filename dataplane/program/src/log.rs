//! Log lines: JSON, or text on a terminal.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    Text,
}

/// Starts logging to standard error. `ROWGATE_LOG` is a filter such as `info,rowgate_pg=debug`. A second call does nothing,
/// so that several servers can run in one test process.
///
/// PostgreSQL's notices are not logged: a tenant's script or function writes them, with values in them. The Kubernetes
/// client's own lines are not logged either: each of its failures is returned to the caller, who logs it with its context.
pub fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_env("ROWGATE_LOG").unwrap_or_else(|_| {
        EnvFilter::new("info,sqlx=warn,sqlx::postgres::notice=off,kube_runtime=error,kube_client=off")
    });
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // an error means that logging has been started before
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
        _ => Err("is not a log format; give json or text".to_owned()),
    }
}

/// Text for people, JSON for everything else.
#[must_use]
pub fn default_format() -> &'static str {
    if std::io::stderr().is_terminal() { "text" } else { "json" }
}
