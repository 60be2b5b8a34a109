//! Every route of the product in one table. It builds the router, and the access test walks it.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONNECTION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use futures_util::FutureExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::service::{Service, service_fn};
use rowgate_core::problem::{Code, Problem};
use tower::ServiceExt as _;

use crate::api::rest::{entity_tags, read, write};
use crate::api::{options, tokens};
use crate::app::App;
use crate::server::access_log::AccessLogEntry;
use crate::server::respond::{Refusal, RequestId, finish};
use crate::server::trace::Trace;
use crate::server::{compress, cors, limits, path, proxies};

/// One line of the table.
#[derive(Debug)]
pub struct Route {
    pub method: &'static str,
    /// The pattern: `{name}` is one part of the path, `{*name}` the rest of it.
    pub path: &'static str,
    /// False only where a stranger may ask.
    pub needs_key: bool,
    handler: fn() -> MethodRouter<Arc<App>>,
}

static ROUTES: [Route; 9] = [
    Route { method: "GET", path: "/auth/{tenant}/api", needs_key: true, handler: || get(read::entities) },
    Route {
        method: "GET",
        path: "/auth/{tenant}/api/{entity}",
        needs_key: true,
        handler: || get(read::collection),
    },
    Route {
        method: "GET",
        path: "/auth/{tenant}/api/{entity}/{*key}",
        needs_key: true,
        handler: || get(read::row),
    },
    Route {
        method: "POST",
        path: "/auth/{tenant}/api/{entity}",
        needs_key: true,
        handler: || post(write::create),
    },
    Route {
        method: "PATCH",
        path: "/auth/{tenant}/api/{entity}/{*key}",
        needs_key: true,
        handler: || patch(write::patch),
    },
    Route {
        method: "PUT",
        path: "/auth/{tenant}/api/{entity}/{*key}",
        needs_key: true,
        handler: || put(write::put),
    },
    Route {
        method: "DELETE",
        path: "/auth/{tenant}/api/{entity}/{*key}",
        needs_key: true,
        handler: || delete(write::delete),
    },
    Route {
        method: "POST",
        path: "/api/auth/apikeys/exchange",
        needs_key: true,
        handler: || post(tokens::exchange),
    },
    Route {
        method: "GET",
        path: "/.well-known/jwks.json",
        needs_key: false,
        handler: || get(tokens::public_keys),
    },
];

/// The table.
#[must_use]
pub fn routes() -> &'static [Route] {
    &ROUTES
}

/// The API: the table's routes, with an id, a log line and the shared headers for each request.
#[derive(Clone)]
pub struct Api {
    app: Arc<App>,
    router: Router,
}

impl Api {
    #[must_use]
    pub fn new(app: Arc<App>) -> Api {
        Api { router: router().with_state(app.clone()), app }
    }

    /// For the requests of one connection.
    pub fn service(
        &self,
        peer: IpAddr,
    ) -> impl Send + Service<hyper::Request<Incoming>, Response = Response, Error = Infallible, Future: Send> + use<>
    {
        let (api, trusts_peer) = (self.clone(), self.app.trusted_proxies.trust(peer));
        service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(Body::new);
            if !trusts_peer {
                proxies::forget(request.headers_mut());
            }
            answer(api.clone(), request)
        })
    }
}

/// Patterns are matched on the raw path; handlers decode its parts themselves, once.
fn router() -> Router<Arc<App>> {
    let with_routes =
        routes().iter().fold(Router::new(), |router, route| router.route(route.path, (route.handler)()));
    let paths: BTreeSet<_> = routes().iter().map(|route| route.path).collect();
    paths
        .into_iter()
        .fold(with_routes, |router, path| router.route(path, options::of(path)))
        .fallback(not_found)
}

async fn answer(api: Api, mut request: Request) -> Result<Response, Infallible> {
    let began = Instant::now();
    without_slash(&mut request);
    let id = RequestId::given(request.headers()).unwrap_or_else(RequestId::now);
    let trace = Arc::new(Trace::new(id.clone()));
    let method = request.method().clone();
    let (accepted, allowed_origin) =
        (compress::accepted(request.headers()), cors::allowed_origin(&request, &api.app.tenants));
    let if_none_match = entity_tags::if_none_match(&method, request.headers());
    let has_body = !request.body().is_end_stream();
    request.extensions_mut().insert(trace.clone());
    let entry = AccessLogEntry::new(api.app, trace, method.clone(), began);
    if let Some(allowed_origin) = &allowed_origin {
        request.extensions_mut().insert(allowed_origin.clone());
    }
    // A HEAD is made like a GET, so that all its headers are; hyper sends no body with it.
    if method == Method::HEAD {
        *request.method_mut() = Method::GET;
    }
    let answering = async {
        match limits::check(&request) {
            Ok(()) => api.router.oneshot(request).await,
            Err(problem) => Ok(Refusal(problem).into_response()),
        }
    };
    // A panic is a fault of ours: the caller gets an answer, and the connection goes on.
    let response = match AssertUnwindSafe(answering).catch_unwind().await {
        Ok(Ok(response)) => response,
        Err(_) => {
            entry.trace.fault("a handler panicked", "see the lines before this one");
            Refusal(Problem::internal()).into_response()
        }
    };
    let refused = response.extensions().get::<Problem>().map(|problem| problem.code);
    let mut response = finish(response, &id);
    // hyper closes a connection on which a body is still to come: a client without this header sends its next request into it
    // (and every 401 is one answer, of a key that died while its body came in, too)
    let is_open = entry.trace.body_is_read.get().is_none() || response.status() == StatusCode::UNAUTHORIZED;
    if has_body && is_open {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(allowed_origin) = allowed_origin {
        allowed_origin.allow(response.headers_mut());
    }
    let response = compress::compressed(response, accepted).await;
    let response = entity_tags::finish(response, if_none_match.as_ref());
    Ok(entry.follow(response, refused))
}

/// Takes a slash at the end of the address for none, before anything looks at it.
fn without_slash(request: &mut Request) {
    let Some(shorter) = path::without_slash(request.uri().path()) else { return };
    let target = match request.uri().query() {
        Some(query) => format!("{shorter}?{query}"),
        None => shorter.to_owned(),
    };
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = target.parse().ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
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
mod tests {
    use http_body_util::BodyExt as _;
    use rowgate_core::derive::Root;
    use rowgate_core::name::Ulid;
    use rowgate_core::secret::{ApiKeySecret, ENTROPY_LEN};
    use rowgate_pg::wire::{CallLimits, Limits};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::app::Tasks;
    use crate::auth::token_keys::TokenKeys;
    use crate::server::body_memory::BodyMemory;
    use crate::server::metrics::RequestMetrics;
    use crate::server::proxies::TrustedProxies;
    use crate::tenants::registry::{PoolConfig, TenantRegistry};

    /// A replica that has not read the control database yet.
    fn app() -> Arc<App> {
        let root = Root::new([1; 32]);
        let (lane, calls) = (Limits::new(1, 1), CallLimits::new(1, 1));
        let pools =
            PoolConfig { replica: Ulid::from_parts(1, [1; 10]), lane, calls, per_server: 4, pooler: None };
        Arc::new(App {
            tenants: Arc::new(TenantRegistry::new(pools, Tasks::default())),
            pepper: root.pepper(),
            cursor_key: root.cursor_key(),
            token_keys: TokenKeys::new(root.clone()),
            trusted_proxies: TrustedProxies::default(),
            metrics: RequestMetrics::default(),
            unparsed: Arc::default(),
            body_memory: BodyMemory::new(BodyMemory::MIN_BYTES),
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
            for path in
                ["{tenant}", "shop", "SHOP", "%ff"].map(|tenant| route.path.replace("{tenant}", tenant))
            {
                for key in [None, Some("shop:dlk_x"), Some(another.as_str())] {
                    // Where the path names no tenant, the tenant is the key's.
                    if key == Some(another.as_str()) && !route.path.contains("{tenant}") {
                        continue;
                    }
                    let response = ask(router(), route.method, &path.replace(['{', '}', '*'], ""), key).await;
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
        let response = ask(router(), "GET", "/auth/shop/api/orders", Some(&key)).await;
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers().get("retry-after").map(|value| value.as_bytes()), Some(&b"1"[..]));
    }

    #[tokio::test]
    async fn other_methods_and_other_paths_are_told_so() {
        for (method, path, allow) in [
            ("GET", "/api/auth/apikeys/exchange", "POST, OPTIONS"),
            ("PUT", "/.well-known/jwks.json", "GET, HEAD, OPTIONS"),
        ] {
            let response = ask(router(), method, path, None).await;
            assert_eq!(response.status(), 405, "{method} {path}");
            let headers = response.headers().get("allow").map(|value| value.as_bytes());
            assert_eq!(headers, Some(allow.as_bytes()), "{method} {path}");
            assert!(text(response).await.contains("\"MethodNotAllowed\""));
        }
        let row = ask(router(), "OPTIONS", "/auth/shop/api/orders/id/7", None).await;
        assert_eq!(row.headers()["allow"].to_str().expect("ASCII").replace(", DELETE", ""), Problem::KEPT);
        for path in ["/", "/authority/shop/api", "/AUTH/shop/api"] {
            let response = ask(router(), "GET", path, None).await;
            assert_eq!(response.status(), 404, "{path}");
            assert!(text(response).await.contains("\"NotFound\""), "{path}");
        }
        for path in ["/auth/shop/api/", "/auth/shop/api/orders/", "/auth/shop/api/orders/id/7/"] {
            assert_eq!(ask(router(), "GET", path, None).await.status(), 401, "{path}");
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
        ] {
            for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"] {
                let response = ask(router(), method, path, None).await;
                assert_eq!(response.status(), 401, "{method} {path}");
                assert!(response.headers().contains_key("www-authenticate"), "{method} {path}");
                answers.push((response.headers().clone(), text(response).await));
            }
        }
        answers.iter().for_each(|answer| assert_eq!(*answer, answers[0]));
    }

    #[tokio::test]
    async fn a_panic_is_answered_and_not_explained() {
        async fn panics() -> Refusal {
            panic!("a secret")
        }
        let panicking = router().route("/panic", get(panics));
        let response = ask(panicking, "GET", "/panic", None).await;
        assert_eq!(response.status(), 500);
        let text = text(response).await;
        assert!(text.contains("\"Internal\"") && !text.contains("secret"), "{text}");
    }
}
