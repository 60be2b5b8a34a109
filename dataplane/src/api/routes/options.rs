//! OPTIONS of every address: its methods, out of the table of routes; and every other method that it does not answer.
//!
//! Anybody may ask OPTIONS, without a key, and then nothing but the table is asked: the answer is the same whether the
//! tenant, the entity or the row exists or not. A browser's preflight is the one exception: see [`cors`]. To a live
//! key that may use an entity, the answer for it and its rows leaves out what PostgreSQL does not do to them; every other
//! key gets the answer of a stranger. A 405 says the same, to live keys; strangers get the 401 that they get everywhere.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, MatchedPath, State};
use axum::http::header::ALLOW;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{self, MethodRouter};
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::rest;

use super::{method_not_allowed, routes};
use crate::api::rest::target::RequestTarget;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::server::cors;
use crate::server::respond::Refusal;
use crate::server::trace::Trace;

/// The handlers of one path of the table: of OPTIONS, and of every method that the table does not have.
pub(crate) fn of(path: &'static str) -> MethodRouter<Arc<App>> {
    let methods = methods(path);
    let allow = header(&[&methods[..], &["OPTIONS"]].concat(), ", ");
    let (methods, otherwise) = (header(&methods, ","), allow.clone());
    let of_row = match path {
        ROW => Some(true),
        ROWS => Some(false),
        _ => None,
    };
    let asked = async move |State(app): State<Arc<App>>, parts: Parts| {
        let fewer = match of_row {
            Some(of_row) => {
                live(parts.clone(), &app).await.ok().and_then(|context| fewer(&parts, &context, of_row))
            }
            None => None,
        };
        let allow = fewer.map_or_else(|| allow.clone(), HeaderValue::from_static);
        answer(&parts, allow, &methods)
    };
    let other = async move |State(app): State<Arc<App>>, parts: Parts| {
        let context = match is_keyed(path) {
            true => Some(live(parts.clone(), &app).await?),
            false => None,
        };
        let fewer = context.as_ref().zip(of_row).and_then(|(context, of_row)| fewer(&parts, context, of_row));
        Ok::<_, Refusal>(refuse(&parts, context.as_ref(), fewer, &otherwise))
    };
    routing::options(asked).fallback(other)
}

/// Whether only a live key learns anything of this address.
pub(crate) fn is_keyed(path: &str) -> bool {
    let is_below =
        |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_below("/auth") || is_below("/api/ddl")
}

/// The path of a row.
const ROW: &str = "/auth/{tenant}/api/{entity}/{*key}";

/// The path of an entity.
const ROWS: &str = "/auth/{tenant}/api/{entity}";

/// The live key that the request holds, of the tenant in its path.
pub(crate) async fn live(mut parts: Parts, app: &Arc<App>) -> Result<KeyContext, Refusal> {
    Ok(Caller::from_request_parts(&mut parts, app).await?.authenticate_fresh().await?)
}

/// What is left where the key may use the entity in the path, and PostgreSQL does not do all of it.
fn fewer(parts: &Parts, context: &KeyContext, of_row: bool) -> Option<&'static str> {
    let entity = RequestTarget::of(parts).entity(context).ok()?;
    let scope = context.snapshot.scope(&context.key);
    rest::allowed(&context.snapshot.catalog, &scope, &entity, of_row)
}

/// Of a method that the table does not have for this path.
fn refuse(
    parts: &Parts,
    context: Option<&KeyContext>,
    fewer: Option<&'static str>,
    all: &HeaderValue,
) -> Response {
    Trace::of(parts);
    let is_called = fewer.is_some() && fewer == Problem::only_called().allow;
    if is_called && parts.method == Method::POST {
        let what = "this entity is a procedure and has no rows; call it with POST at its own URL";
        return Refusal(Problem::new(Code::NotFound, what)).into_response();
    }
    let row = if is_called { None } else { row_address(parts, context) };
    let mut response = Refusal(method_not_allowed(row)).into_response();
    let allow = fewer.map_or_else(|| all.clone(), HeaderValue::from_static);
    response.headers_mut().insert(ALLOW, allow);
    response
}

/// Where a row of the entity in the path is, for the message of a method that its collection does not answer; `None` at any
/// other address. With the names of its key fields for a key that may read them, else as a pattern.
fn row_address(parts: &Parts, context: Option<&KeyContext>) -> Option<String> {
    parts.extensions.get::<MatchedPath>().filter(|route| route.as_str() == ROWS)?;
    let key = context.and_then(|context| {
        let entity = RequestTarget::of(parts).entity(context).ok()?;
        rest::key_path(&context.snapshot.catalog, &context.snapshot.scope(&context.key), &entity)
    });
    let pattern = || "/auth/{tenant}/api/{entity}/{key field}/{value}".to_owned();
    Some(key.map_or_else(pattern, |key| format!("{}{key}", parts.uri.path())))
}

fn answer(parts: &Parts, allow: HeaderValue, methods: &HeaderValue) -> Result<Response, Refusal> {
    Trace::of(parts);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if let Some(headers) = cors::preflight(parts, methods) {
        *response.headers_mut() = headers?;
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

fn header(methods: &[&str], between: &str) -> HeaderValue {
    HeaderValue::try_from(methods.join(between)).expect("methods are letters")
}
