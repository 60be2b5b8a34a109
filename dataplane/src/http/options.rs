//! OPTIONS of every address: its methods, out of the table of routes.
//!
//! Anybody may ask, without a key, and then nothing but the table is asked: the answer is the same whether the tenant, the
//! entity or the row exists or not. A browser's preflight is the one exception: see [`cors`]. To whoever sends a live key
//! that may use an entity, it and its rows say what PostgreSQL does not do to them; every other key is told what a stranger is.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, State};
use axum::http::header::ALLOW;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use rowgate_sql::resolve;

use super::rest::Here;
use super::routes;
use crate::app::App;
use crate::auth::Caller;
use crate::cors;
use crate::respond::Refusal;
use crate::telemetry::Trace;

/// The handler of one path of the table.
pub(super) fn of(path: &'static str) -> MethodRouter<Arc<App>> {
    let methods = methods(path);
    let (allow, methods) = (header(&[&methods[..], &["OPTIONS"]].concat()), header(&methods));
    let of_row = match path {
        ROW => Some(true),
        ROWS => Some(false),
        _ => None,
    };
    routing::options(async move |State(app): State<Arc<App>>, parts: Parts| {
        let fewer = match of_row {
            Some(of_row) => fewer(parts.clone(), &app, of_row).await,
            None => None,
        };
        let allow = fewer.map_or_else(|| allow.clone(), HeaderValue::from_static);
        answer(&parts, allow, &methods)
    })
}

/// The path of a row.
const ROW: &str = "/auth/{tenant}/api/{entity}/{*key}";

/// The path of an entity.
const ROWS: &str = "/auth/{tenant}/api/{entity}";

/// What is left where the request holds a live key that may use the entity in its path, and PostgreSQL does not do all of it.
async fn fewer(mut parts: Parts, app: &Arc<App>, of_row: bool) -> Option<&'static str> {
    let here = Here::of(&parts);
    let caller = Caller::from_request_parts(&mut parts, app).await.ok()?;
    let known = caller.recognize_anew().await.ok()?;
    let entity = here.entity().ok()?;
    let scope = known.snapshot.scope(&known.key);
    caller.check_role(&known).ok()?;
    resolve::allowed(&known.snapshot.catalog, &scope, &entity, of_row)
}

fn answer(parts: &Parts, allow: HeaderValue, methods: &HeaderValue) -> Result<Response, Refusal> {
    Trace::of(parts);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if let Some(told) = cors::preflight(parts, methods) {
        *response.headers_mut() = told?;
    }
    response.headers_mut().insert(ALLOW, allow);
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
