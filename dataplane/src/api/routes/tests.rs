//! What strangers and callers learn of addresses.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http_body_util::BodyExt as _;
use rowgate_core::derive::Root;
use rowgate_core::name::Ulid;
use rowgate_core::secret::{ApiKeySecret, ENTROPY_LEN};
use rowgate_pg::wire::{CallLimits, Limits, QueryLimits};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::api::graphql::persisted::PersistedOperations;
use crate::api::graphql::schema::cache::SchemaCache;
use crate::api::graphql::websocket::Sockets;
use crate::api::openapi::cache::DocumentCache;
use crate::api::service::{Api, answer};
use crate::app::Tasks;
use crate::auth::token_keys::TokenKeys;
use crate::delivery::facts::SubscriptionFacts;
use crate::delivery::sender::Sender;
use crate::server::body_memory::BodyMemory;
use crate::server::metrics::RequestMetrics;
use crate::server::proxies::TrustedProxies;
use crate::tenants::registry::{PoolConfig, TenantRegistry};

/// A replica that has not read the control database yet.
fn app() -> Arc<App> {
    let root = Root::new([1; 32]);
    let (request_limits, calls) = (Limits::new(1, 1), CallLimits::new(1, 1));
    let pools = PoolConfig {
        replica: Ulid::from_parts(1, [1; 10]),
        request_limits,
        calls,
        queries: QueryLimits::new(1, 1),
        per_server: 4,
        pooler: None,
    };
    Arc::new(App {
        shared_reads: Arc::default(),
        tenants: Arc::new(TenantRegistry::new(pools, Tasks::default())),
        pepper: root.pepper(),
        cursor_key: root.cursor_key(),
        token_keys: TokenKeys::new(root.clone()),
        trusted_proxies: TrustedProxies::default(),
        metrics: RequestMetrics::default(),
        unparsed: Arc::default(),
        body_memory: BodyMemory::new(BodyMemory::MIN_BYTES),
        schemas: SchemaCache::default(),
        persisted: PersistedOperations::default(),
        documents: DocumentCache::new(Surfaces::ALL),
        console: None,
        sockets: Sockets::new(Tasks::default(), CancellationToken::new()),
        sender: Sender::new(Vec::new()),
        sealing_key: root.sealing_key(),
        subscription_facts: SubscriptionFacts::default(),
        exports: None,
        surfaces: Surfaces::ALL,
        draining: CancellationToken::new(),
    })
}

async fn ask(router: Router<Arc<App>>, method: &str, path: &str, key: Option<&str>) -> Response {
    let mut request = Request::builder().method(method).uri(path).header("x-request-id", "r1");
    if let Some(key) = key {
        request = request.header("x-api-key", key);
    }
    let request = request.body(Body::empty()).expect("a request");
    let app = app();
    answer(Api { router: router.with_state(app.clone()), app }, request)
        .await
        .expect("an answer is never an error")
}

async fn text(response: Response) -> String {
    let bytes = response.into_body().collect().await.expect("a body in memory").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("JSON")
}

#[tokio::test]
async fn every_route_that_needs_a_key_gives_strangers_the_same_401() {
    let another = ApiKeySecret::generate(&[7; ENTROPY_LEN]).reveal(&"other".parse().expect("a slug"));
    let mut bodies = Vec::new();
    for route in routes().iter().filter(|route| route.needs_key) {
        for path in ["{tenant}", "shop", "SHOP", "%ff"].map(|tenant| route.path.replace("{tenant}", tenant)) {
            for key in [None, Some("shop:dlk_x"), Some(another.as_str())] {
                // Where the path names no tenant, the tenant is the key's.
                if key == Some(another.as_str()) && !route.path.contains("{tenant}") {
                    continue;
                }
                let response =
                    ask(router(Surfaces::ALL), route.method, &path.replace(['{', '}', '*'], ""), key).await;
                assert_eq!(response.status(), 401, "{} {path} {key:?}", route.method);
                assert!(response.headers().contains_key("www-authenticate"));
                bodies.push(text(response).await);
            }
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
}

#[test]
fn a_tenant_stands_in_the_second_part_of_a_path_or_nowhere() {
    for route in routes() {
        let part = route.path.split('/').position(|part| part == "{tenant}");
        assert_eq!(part, route.path.contains("{tenant}").then_some(2), "{}", route.path);
    }
}

#[tokio::test]
async fn nobody_is_refused_before_the_tenants_are_known() {
    let key = ApiKeySecret::generate(&[7; ENTROPY_LEN]).reveal(&"shop".parse().expect("a slug"));
    let response = ask(router(Surfaces::ALL), "GET", "/auth/shop/api/orders", Some(&key)).await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers().get("retry-after").map(|value| value.as_bytes()), Some(&b"1"[..]));
}

#[tokio::test]
async fn other_methods_and_other_paths_are_told_so() {
    for (method, path, allow) in [
        ("GET", "/api/auth/apikeys/exchange", "POST, OPTIONS"),
        ("PUT", "/.well-known/jwks.json", "GET, HEAD, OPTIONS"),
    ] {
        let response = ask(router(Surfaces::ALL), method, path, None).await;
        assert_eq!(response.status(), 405, "{method} {path}");
        let headers = response.headers().get("allow").map(|value| value.as_bytes());
        assert_eq!(headers, Some(allow.as_bytes()), "{method} {path}");
        assert!(text(response).await.contains("\"MethodNotAllowed\""));
    }
    let row = ask(router(Surfaces::ALL), "OPTIONS", "/auth/shop/api/orders/id/7", None).await;
    assert_eq!(row.headers()["allow"].to_str().expect("ASCII").replace(", DELETE", ""), Problem::KEPT);
    for path in ["/", "/authority/shop/api", "/AUTH/shop/api"] {
        let response = ask(router(Surfaces::ALL), "GET", path, None).await;
        assert_eq!(response.status(), 404, "{path}");
        assert!(text(response).await.contains("\"NotFound\""), "{path}");
    }
    for path in ["/auth/shop/api/", "/auth/shop/api/orders/", "/auth/shop/api/orders/id/7/"] {
        assert_eq!(ask(router(Surfaces::ALL), "GET", path, None).await.status(), 401, "{path}");
    }
}

/// Seen to fail with the 405 of axum, and with a 404 that is given to anybody.
#[tokio::test]
async fn strangers_are_told_nothing_of_any_address_that_needs_a_key() {
    let mut answers = Vec::new();
    for path in [
        "/auth",
        "/auth/",
        "/auth/shop",
        "/auth/shop/",
        "/auth/shop/api",
        "/auth/shop/api/",
        "/auth//api",
        "/auth/shop/api/orders",
        "/auth/shop/api/orders/",
        "/auth/shop/api/orders/id/7",
        "/auth/shop/graphql",
        "/auth/shop/api/orders/id/7/",
        "/auth/shop/nothing/at/all",
        "/auth/nobody/x",
        "/auth/%ff/x",
        "/api/ddl",
        "/api/ddl/aggregates",
        "/api/ddl/aggregates/orders",
        "/api/ddl/aggregates/orders/id/7",
        "/api/ddl/nothing/at/all",
    ] {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"] {
            let response = ask(router(Surfaces::ALL), method, path, None).await;
            assert_eq!(response.status(), 401, "{method} {path}");
            assert!(response.headers().contains_key("www-authenticate"), "{method} {path}");
            answers.push((response.headers().clone(), text(response).await));
        }
    }
    answers.iter().for_each(|answer| assert_eq!(*answer, answers[0]));
}

#[tokio::test]
async fn a_surface_that_is_not_served_has_nothing_at_its_addresses() {
    for (surfaces, exchange, keys, rows) in [
        ("data", 404, 404, 401),
        ("auth", 401, 200, 401),
        ("ddl", 404, 404, 401),
        ("auth,data", 401, 200, 401),
    ] {
        let router = || router(Surfaces::parse(surfaces).expect("surfaces"));
        let exchanged = ask(router(), "POST", "/api/auth/apikeys/exchange", None).await.status().as_u16();
        let listed = ask(router(), "OPTIONS", "/.well-known/jwks.json", None).await.status().as_u16();
        let read = ask(router(), "GET", "/auth/shop/api/orders", None).await.status().as_u16();
        // to strangers every address of a tenant is the same
        let keys = if keys == 200 { 204 } else { keys };
        assert_eq!((exchanged, listed, read), (exchange, keys, rows), "{surfaces}");
        let options = ask(router(), "OPTIONS", "/auth/shop/api/orders", None).await.status().as_u16();
        assert_eq!(options, if surfaces.contains("data") { 204 } else { 404 }, "{surfaces}");
    }
}

#[tokio::test]
async fn a_panic_is_answered_and_not_explained() {
    async fn panics() -> Refusal {
        panic!("a secret")
    }
    let panicking = router(Surfaces::ALL).route("/panic", get(panics));
    let response = ask(panicking, "GET", "/panic", None).await;
    assert_eq!(response.status(), 500);
    let text = text(response).await;
    assert!(text.contains("\"Internal\"") && !text.contains("secret"), "{text}");
}
