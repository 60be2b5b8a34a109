//! `/livez`, `/readyz` and `/metrics`, on a port of their own.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};

use crate::app::App;
use crate::server::metrics::exposition;

/// Answers probes: alive always, ready once the first catalogs were tried and until draining begins.
pub fn service(
    app: Arc<App>,
) -> impl Clone + Service<hyper::Request<Incoming>, Response = Response, Error = Infallible, Future: Send> {
    service_fn(move |request: hyper::Request<Incoming>| answer(&app, request.uri().path()))
}

fn answer(app: &App, path: &str) -> Ready<Result<Response, Infallible>> {
    let (status, text) = match path {
        "/metrics" => return ready(Ok(exposition::answer(app))),
        "/livez" => (200, "alive\n"),
        "/readyz" if app.draining.is_cancelled() => (503, "draining\n"),
        "/readyz" if app.tenants.all_loads_attempted() => (200, "ready\n"),
        "/readyz" => (503, "the first catalogs are not loaded yet\n"),
        _ => (404, "this port serves /livez, /readyz and /metrics\n"),
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status.try_into().expect("200, 404 and 503 are statuses");
    ready(Ok(response))
}
