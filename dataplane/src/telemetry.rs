//! Log lines: JSON, or text on a terminal. One line per request, with its route and never its path, query or values.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::MatchedPath;
use rowgate_pg::keys::Found;
use tracing_subscriber::EnvFilter;

use crate::respond::RequestId;
use crate::tenant::Tenant;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    Text,
}

/// Starts logging to standard error. `ROWGATE_LOG` filters, as `info,rowgate_pg=debug`. A second call does nothing,
/// so that several servers can run in one test process.
///
/// Notices of PostgreSQL are left out: a tenant's own script or function writes them, with values in them.
pub fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_env("ROWGATE_LOG")
        .unwrap_or_else(|_| EnvFilter::new("info,sqlx=warn,sqlx::postgres::notice=off"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // An error means that logging was started before, which is what the call wants.
    let _started = match format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).try_init(),
        LogFormat::Text => lines.try_init(),
    };
}

/// What becomes known of a request on its way, for its log line.
pub struct Trace {
    pub request: RequestId,
    /// The pattern that matched, such as `/auth/{tenant}/api/{entity}`.
    pub route: OnceLock<MatchedPath>,
    pub tenant: OnceLock<Arc<Tenant>>,
    pub key: OnceLock<Arc<Found>>,
}

impl Trace {
    #[must_use]
    pub fn new(request: RequestId) -> Trace {
        Trace { request, route: OnceLock::new(), tenant: OnceLock::new(), key: OnceLock::new() }
    }

    /// Writes why the request failed, for whoever looks its id up. `cause` may be what PostgreSQL said.
    pub fn fault(&self, what: &'static str, cause: &str) {
        let tenant = self.tenant_slug();
        tracing::warn!(target: "rowgate::fault", tenant, request_id = self.request.as_str(), cause, "{what}");
    }

    /// Writes the request's one line.
    pub fn log(&self, method: &str, status: u16, took: Duration) {
        tracing::info!(
            target: "rowgate::request",
            method,
            route = self.route.get().map_or("-", MatchedPath::as_str),
            status,
            duration_ms = took.as_micros() as f64 / 1000.0,
            tenant = self.tenant_slug(),
            key = self.key.get().map_or("-", |key| key.id.as_str()),
            request_id = self.request.as_str(),
            "request"
        );
    }

    fn tenant_slug(&self) -> &str {
        self.tenant.get().map_or("-", |tenant| tenant.slug.as_str())
    }
}
