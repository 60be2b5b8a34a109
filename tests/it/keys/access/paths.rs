//! What each route, and each address that is none, is asked for, and what a live key is told there.

/// Paths, and what a live key is told.
pub(super) type Wrong = &'static [(&'static str, u16)];

/// What a live key is told of a write without a body, to a row that is not there, or where it may not write.
pub(super) const LIVE: [&str; 3] = ["BadRequest", "RowNotFound", "Forbidden"];

/// Method and pattern of each route, a path that `shop-admin` may read below it, and such of an entity and of a field
/// that do not exist, with what a live key is told. A route without a line here fails the test.
pub(super) const PATHS: [(&str, &str, &str, Wrong); 10] = [
    ("GET", "/auth/{tenant}/graphql", "/graphql?query=%7B__typename%7D", &[]),
    ("POST", "/auth/{tenant}/graphql", "/graphql", &[]),
    ("GET", "/auth/{tenant}/api", "/api", &[]),
    ("GET", "/auth/{tenant}/openapi.json", "/openapi.json", &[]),
    ("POST", "/auth/{tenant}/api/{entity}", "/api/orders", &[("/api/absentee", 404)]),
    ("PATCH", "/auth/{tenant}/api/{entity}/{*key}", "/api/orders/id/999999", &[("/api/absentee/id/1", 404)]),
    ("PUT", "/auth/{tenant}/api/{entity}/{*key}", "/api/orders/id/999999", &[("/api/absentee/id/1", 404)]),
    ("DELETE", "/auth/{tenant}/api/{entity}/{*key}", "/api/orders/id/999999", &[("/api/absentee/id/1", 404)]),
    (
        "GET",
        "/auth/{tenant}/api/{entity}",
        "/api/orders",
        &[("/api/absentee", 404), ("/api/orders?$select=absentee", 400)],
    ),
    (
        "GET",
        "/auth/{tenant}/api/{entity}/{*key}",
        "/api/orders/id/2",
        &[("/api/absentee/id/1", 404), ("/api/orders/id/2?$select=absentee", 400)],
    ),
];

/// The same for the routes at which a procedure answers otherwise than a table: the status and the code that a live key is
/// told. A route to an entity without a line here fails the test.
pub(super) const PROCEDURE: [(&str, &str, &str, (u16, &str)); 6] = [
    ("POST", "/auth/{tenant}/api/{entity}", "/api/best_sellers", (201, "")),
    ("GET", "/auth/{tenant}/api/{entity}", "/api/best_sellers", (405, "MethodNotAllowed")),
    ("GET", "/auth/{tenant}/api/{entity}/{*key}", "/api/best_sellers/id/1", (405, "MethodNotAllowed")),
    ("PATCH", "/auth/{tenant}/api/{entity}/{*key}", "/api/best_sellers/id/1", (405, "MethodNotAllowed")),
    ("PUT", "/auth/{tenant}/api/{entity}/{*key}", "/api/best_sellers/id/1", (405, "MethodNotAllowed")),
    ("DELETE", "/auth/{tenant}/api/{entity}/{*key}", "/api/best_sellers/id/1", (405, "MethodNotAllowed")),
];

/// Methods that no address has, and addresses that there are not, with what a live key is told: the status, and `Allow`.
pub(super) const NOWHERE: [(&str, &str, u16, Option<&str>); 9] = [
    ("PUT", "/api", 405, Some("GET, HEAD, OPTIONS")),
    ("DELETE", "/api/orders", 405, Some("GET, HEAD, POST, OPTIONS")),
    ("BREW", "/api/absentee", 405, Some("GET, HEAD, POST, OPTIONS")),
    ("POST", "/api/orders/id/1", 405, Some("GET, HEAD, PATCH, PUT, DELETE, OPTIONS")),
    ("TRACE", "/api/best_sellers", 405, Some("POST")),
    ("POST", "/api/best_sellers/id/1", 404, None),
    ("POST", "", 404, None),
    ("GET", "/nothing/at/all", 404, None),
    ("PATCH", "/openapi", 404, None),
];

/// The same for the routes that name no tenant; `tests/it/keys/tokens` tells what they answer to those who may ask.
pub(super) const ELSEWHERE: [(&str, &str); 24] = [
    ("POST", "/api/auth/apikeys/exchange"),
    ("GET", "/.well-known/jwks.json"),
    ("POST", "/api/ddl/aggregates/{entity}"),
    ("POST", "/api/ddl/sql"),
    ("POST", "/api/ddl/exports"),
    ("GET", "/api/ddl/exports"),
    ("GET", "/api/ddl/exports/{id}"),
    ("DELETE", "/api/ddl/exports/{id}"),
    // to whoever has a link: `exports::links`
    ("GET", "/api/ddl/exports/{id}/file"),
    ("GET", "/api/ddl/events"),
    ("GET", "/api/ddl/events/stream"),
    ("POST", "/api/ddl/events/webhooks"),
    ("GET", "/api/ddl/events/webhooks"),
    ("GET", "/api/ddl/events/webhooks/{id}"),
    ("PATCH", "/api/ddl/events/webhooks/{id}"),
    ("DELETE", "/api/ddl/events/webhooks/{id}"),
    ("GET", "/api/ddl/events/webhooks/{id}/deliveries"),
    ("GET", "/api/ddl/events/webhooks/{id}/dead-letters"),
    ("GET", "/api/ddl/events/webhooks/{id}/dead-letters/{dl}"),
    ("POST", "/api/ddl/events/webhooks/{id}/dead-letters/{dl}/redrive"),
    ("POST", "/api/ddl/events/webhooks/{id}/dead-letters/redrive"),
    ("POST", "/api/ddl/events/webhooks/{id}/secret/rotate"),
    ("POST", "/api/ddl/events/webhooks/{id}/replay"),
    ("POST", "/api/ddl/events/webhooks/{id}/test"),
];
