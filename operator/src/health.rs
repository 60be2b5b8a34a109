//! `/healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use rowgate_program::metrics;
use tokio::sync::watch as watch_channel;

use crate::api::Progress;
use crate::meter::Meter;
use crate::source::KubeSource;

/// A watch that heard nothing for this many times its duration is dead, and only a restart is known to help: even an idle
/// watch is renewed when it expires, and a failing one every few seconds.
const MAX_SILENCE_FACTOR: f64 = 2.3;

/// What the answers are made of.
#[derive(Clone)]
pub struct Health {
    pub source: Arc<KubeSource>,
    pub progress: Progress,
    /// How long a watch lasts.
    pub watch: Duration,
    pub meter: Arc<Meter>,
    /// Whether this operator holds the Lease.
    pub leads: watch_channel::Receiver<bool>,
}

/// The routes.
pub fn routes(health: Health) -> Router {
    Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(page))
        .with_state(health)
}

async fn alive(State(health): State<Health>) -> impl IntoResponse {
    let silence = health.progress.silence();
    match silence < health.watch.mul_f64(MAX_SILENCE_FACTOR) {
        true => (StatusCode::OK, "alive\n".to_owned()),
        false => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("a watch has heard nothing from the API server for {} s\n", silence.as_secs()),
        ),
    }
}

async fn ready(State(health): State<Health>) -> impl IntoResponse {
    match (health.source.is_ready(), *health.leads.borrow()) {
        (true, true) => (StatusCode::OK, "ready, and leads\n"),
        (true, false) => (StatusCode::OK, "ready to take over\n"),
        (false, _) => {
            (StatusCode::SERVICE_UNAVAILABLE, "the first lists from the API server have not arrived yet\n")
        }
    }
}

async fn page(State(health): State<Health>) -> impl IntoResponse {
    let leads = *health.leads.borrow();
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], health.meter.page(&health.source, &health.progress, leads))
}
