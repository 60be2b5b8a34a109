//! OPTIONS of every address: its methods, out of the table of routes.
//!
//! Anybody may ask, without a key, and nothing but the table is asked: the answer is the same whether the tenant, the
//! entity or the row exists or not. A browser's preflight is the one exception: see [`cors`].

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::ALLOW;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{self, MethodRouter};

use super::routes;
use crate::app::App;
use crate::cors;
use crate::respond::Refusal;
use crate::telemetry::Trace;

/// The handler of one path of the table.
pub(super) fn of(path: &'static str) -> MethodRouter<Arc<App>> {
    let methods = methods(path);
    let (allow, methods) = (header(&[&methods[..], &["OPTIONS"]].concat()), header(&methods));
    routing::options(move |parts: Parts| std::future::ready(answer(&parts, &allow, &methods)))
}

fn answer(parts: &Parts, allow: &HeaderValue, methods: &HeaderValue) -> Result<Response, Refusal> {
    Trace::of(parts);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if let Some(told) = cors::preflight(parts, methods) {
        *response.headers_mut() = told?;
    }
    response.headers_mut().insert(ALLOW, allow.clone());
    Ok(response)
}

/// What the table has for a path, and HEAD where it has GET.
fn methods(path: &str) -> Vec<&'static str> {
    let mut methods = Vec::new();
    for route in routes().iter().filter(|route| route.path == path) {
        methods.push(route.method);
        if route.method == "GET" {
            methods.push("HEAD");
        }
    }
    methods
}

fn header(methods: &[&str]) -> HeaderValue {
    HeaderValue::try_from(methods.join(",")).expect("methods are letters")
}
