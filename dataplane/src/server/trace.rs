//! What the log says of requests: one line each, with its route and never its path, query or values.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::MatchedPath;
use axum::http::{Method, StatusCode};
use rowgate_core::problem::Code;
use rowgate_pg::tenant::keys::Found;

use crate::server::metrics::{self, RequestMetrics, RequestSample};
use crate::server::respond::RequestId;
use crate::tenants::tenant::Tenant;

/// How a request ended.
pub struct RequestEnd<'a> {
    pub method: &'a Method,
    pub status: StatusCode,
    /// Why it was refused, if it was.
    pub refused: Option<Code>,
    /// From its headers until the connection had taken its answer.
    pub took: Duration,
    /// Of the body, as it was sent.
    pub bytes: u64,
    pub is_whole: bool,
}

/// What becomes known of a request on its way, for its log line.
pub struct Trace {
    pub request: RequestId,
    /// The pattern that matched, such as `/auth/{tenant}/api/{entity}`.
    pub route: OnceLock<MatchedPath>,
    pub tenant: OnceLock<Arc<Tenant>>,
    pub key: OnceLock<Arc<Found>>,
    /// How many rows were read, once they all were.
    pub rows: OnceLock<usize>,
    /// Set when the whole body of the request has come in.
    pub body_is_read: OnceLock<()>,
    /// Nanoseconds spent on exchanges with the tenant's database.
    database: AtomicU64,
}

impl Trace {
    #[must_use]
    pub fn new(request: RequestId) -> Trace {
        Trace {
            request,
            route: OnceLock::new(),
            tenant: OnceLock::new(),
            key: OnceLock::new(),
            rows: OnceLock::new(),
            body_is_read: OnceLock::new(),
            database: AtomicU64::new(0),
        }
    }

    /// Notes an exchange with the tenant's database, for the log and for the tenant's meter.
    pub fn note_exchange(&self, tenant: &Tenant, took: Duration) {
        tenant.metrics.exchanges.observe(took);
        self.database.fetch_add(u64::try_from(took.as_nanos()).unwrap_or_default(), Ordering::Relaxed);
    }

    /// Writes why the request failed, for an operator who looks up its id. `cause` may be what PostgreSQL said.
    pub fn fault(&self, what: &'static str, cause: &str) {
        let tenant = self.tenant_slug();
        tracing::warn!(target: "rowgate::fault", tenant, request_id = self.request.as_str(), cause, "{what}");
    }

    /// Counts the request, in its tenant's meter or with the `unattributed`, and writes its one line.
    pub fn end(&self, unattributed: &RequestMetrics, end: &RequestEnd<'_>) {
        let RequestEnd { method, status, refused, took, bytes, is_whole } = *end;
        let route = self.route.get().map(MatchedPath::as_str);
        let metrics = self.tenant.get().map_or(unattributed, |tenant| &tenant.metrics);
        metrics.count(&RequestSample { route, method, status, refused, took, is_whole });
        let database = Duration::from_nanos(self.database.load(Ordering::Relaxed));
        tracing::info!(
            target: "rowgate::request",
            method = metrics::method(method),
            route = route.unwrap_or(metrics::NONE),
            status = status.as_u16(),
            code = refused.map(tracing::field::debug),
            duration_ms = millis(took),
            database_ms = (!database.is_zero()).then(|| millis(database)),
            rows = self.rows.get(),
            bytes,
            cut = (!is_whole).then_some(true),
            tenant = self.tenant_slug(),
            key = self.key.get().map_or(metrics::NONE, |key| key.id.as_str()),
            request_id = self.request.as_str(),
            "request"
        );
    }

    fn tenant_slug(&self) -> &str {
        self.tenant.get().map_or(metrics::NONE, |tenant| tenant.slug.as_str())
    }
}

fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}
