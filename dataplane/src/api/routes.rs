//! Every route of the product in one table. It builds the router, and the access test walks it.

mod options;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::Method;
use axum::http::request::Parts;
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use rowgate_core::problem::{Code, Problem};

use crate::api::rest::{read, write};
use crate::api::surface::{Surface, Surfaces};
use crate::api::{aggregates, events, exports, graphql, openapi, sql, tokens, webhooks};
use crate::app::App;
use crate::server::respond::Refusal;

/// One line of the table.
#[derive(Debug)]
pub struct Route {
    pub method: &'static str,
    /// The pattern: `{name}` is one part of the path, `{*name}` the rest of it.
    pub path: &'static str,
    /// False only where a stranger may ask.
    pub needs_key: bool,
    pub surface: Surface,
    handler: fn() -> MethodRouter<Arc<App>>,
}

static ROUTES: [Route; 34] = [
    Route {
        method: "GET",
        path: "/auth/{tenant}/api",
        needs_key: true,
        surface: Surface::Data,
        handler: || get(read::entities),
    },
    Route {
        method: "GET",
        path: "/auth/{tenant}/api/{entity}",
        needs_key: true,
        surface: Surface::Data,
        handler: || get(read::collection),
    },
    Route {
        method: "GET",
        path: "/auth/{tenant}/api/{entity}/{*key}",
        needs_key: true,
        surface: Surface::Data,
        handler: || get(read::row),
    },
    Route {
        method: "POST",
        path: "/auth/{tenant}/api/{entity}",
        needs_key: true,
        surface: Surface::Data,
        handler: || post(write::create),
    },
    Route {
        method: "PATCH",
        path: "/auth/{tenant}/api/{entity}/{*key}",
        needs_key: true,
        surface: Surface::Data,
        handler: || patch(write::patch),
    },
    Route {
        method: "PUT",
        path: "/auth/{tenant}/api/{entity}/{*key}",
        needs_key: true,
        surface: Surface::Data,
        handler: || put(write::put),
    },
    Route {
        method: "DELETE",
        path: "/auth/{tenant}/api/{entity}/{*key}",
        needs_key: true,
        surface: Surface::Data,
        handler: || delete(write::delete),
    },
    Route {
        method: "GET",
        path: "/auth/{tenant}/openapi.json",
        needs_key: true,
        surface: Surface::Data,
        handler: || get(openapi::document),
    },
    Route {
        method: "GET",
        path: "/auth/{tenant}/graphql",
        needs_key: true,
        surface: Surface::Data,
        handler: || get(graphql::get),
    },
    Route {
        method: "POST",
        path: "/auth/{tenant}/graphql",
        needs_key: true,
        surface: Surface::Data,
        handler: || post(graphql::post),
    },
    Route {
        method: "POST",
        path: "/api/ddl/aggregates/{entity}",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || post(aggregates::groups),
    },
    Route {
        method: "POST",
        path: "/api/ddl/sql",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || post(sql::query),
    },
    Route {
        method: "POST",
        path: "/api/ddl/exports",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || post(exports::create),
    },
    Route {
        method: "GET",
        path: "/api/ddl/exports",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || get(exports::list),
    },
    Route {
        method: "GET",
        path: "/api/ddl/exports/{id}",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || get(exports::get),
    },
    Route {
        method: "DELETE",
        path: "/api/ddl/exports/{id}",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || delete(exports::delete),
    },
    Route {
        method: "GET",
        path: "/api/ddl/exports/{id}/file",
        needs_key: false,
        surface: Surface::Ddl,
        handler: || get(exports::download::file),
    },
    Route {
        method: "GET",
        path: "/api/ddl/events",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || get(events::page),
    },
    Route {
        method: "GET",
        path: "/api/ddl/events/stream",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || get(events::stream::open),
    },
    Route {
        method: "POST",
        path: "/api/ddl/events/webhooks",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || post(webhooks::manage::create),
    },
    Route {
        method: "GET",
        path: "/api/ddl/events/webhooks",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || get(webhooks::manage::list),
    },
    Route {
        method: "GET",
        path: "/api/ddl/events/webhooks/{id}",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || get(webhooks::manage::get),
    },
    Route {
        method: "PATCH",
        path: "/api/ddl/events/webhooks/{id}",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || patch(webhooks::manage::patch),
    },
    Route {
        method: "DELETE",
        path: "/api/ddl/events/webhooks/{id}",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || delete(webhooks::manage::delete),
    },
    Route {
        method: "GET",
        path: "/api/ddl/events/webhooks/{id}/deliveries",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || get(webhooks::past::deliveries),
    },
    Route {
        method: "GET",
        path: "/api/ddl/events/webhooks/{id}/dead-letters",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || get(webhooks::past::dead_letters),
    },
    Route {
        method: "GET",
        path: "/api/ddl/events/webhooks/{id}/dead-letters/{dl}",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || get(webhooks::past::dead_letter),
    },
    Route {
        method: "POST",
        path: "/api/ddl/events/webhooks/{id}/dead-letters/{dl}/redrive",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || post(webhooks::past::redrive),
    },
    Route {
        method: "POST",
        path: "/api/ddl/events/webhooks/{id}/dead-letters/redrive",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || post(webhooks::past::redrive_all),
    },
    Route {
        method: "POST",
        path: "/api/ddl/events/webhooks/{id}/secret/rotate",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || post(webhooks::secret::rotate),
    },
    Route {
        method: "POST",
        path: "/api/ddl/events/webhooks/{id}/replay",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || post(webhooks::replay::replay),
    },
    Route {
        method: "POST",
        path: "/api/ddl/events/webhooks/{id}/test",
        needs_key: true,
        surface: Surface::Ddl,
        handler: || post(webhooks::trial::send),
    },
    Route {
        method: "POST",
        path: "/api/auth/apikeys/exchange",
        needs_key: true,
        surface: Surface::Auth,
        handler: || post(tokens::exchange),
    },
    Route {
        method: "GET",
        path: "/.well-known/jwks.json",
        needs_key: false,
        surface: Surface::Auth,
        handler: || get(tokens::public_keys),
    },
];

/// The table.
#[must_use]
pub fn routes() -> &'static [Route] {
    &ROUTES
}

/// Of the surfaces that are served. Patterns are matched on the raw path; handlers decode its parts themselves, once.
pub(super) fn router(surfaces: Surfaces) -> Router<Arc<App>> {
    let served = || routes().iter().filter(|route| surfaces.has(route.surface));
    let with_routes =
        served().fold(Router::new(), |router, route| router.route(route.path, (route.handler)()));
    let paths: BTreeSet<_> = served().map(|route| route.path).collect();
    paths
        .into_iter()
        .fold(with_routes, |router, path| router.route(path, options::of(path)))
        .fallback(not_found)
}

/// Of a method that an address does not answer. `row`: where a row of its collection is.
pub(crate) fn method_not_allowed(row: Option<String>) -> Problem {
    let row = row.map(|address| format!("; a row's URL is {address}")).unwrap_or_default();
    let what = format!(
        "this URL does not support that method; the Allow header lists the methods that it supports{row}"
    );
    Problem::new(Code::MethodNotAllowed, what)
}

/// A caller without a live key does not even learn that, except from OPTIONS.
async fn not_found(State(app): State<Arc<App>>, parts: Parts) -> Refusal {
    let needs_key = options::is_keyed(parts.uri.path()) && parts.method != Method::OPTIONS;
    if needs_key && let Err(refusal) = options::live(parts, &app).await {
        return refusal;
    }
    Problem::new(Code::NotFound, "there is nothing at this URL; entities are at /auth/{tenant}/api/{entity}")
        .into()
}

#[cfg(test)]
mod tests;
