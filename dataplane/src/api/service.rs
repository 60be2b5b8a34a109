//! What every request to the API passes before and after its route: id, limits, log line, shared headers, compression.

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::service::{Service, service_fn};
use rowgate_core::problem::Problem;
use tower::ServiceExt as _;

use crate::api::console::Console;
use crate::api::rest::entity_tags;
use crate::api::routes::router;
use crate::app::App;
use crate::server::access_log::AccessLogEntry;
use crate::server::respond::{Refusal, RequestId, finish};
use crate::server::trace::Trace;
use crate::server::{compress, cors, limits, path, proxies};

/// The API: the table's routes, with an id, a log line and the shared headers for each request.
#[derive(Clone)]
pub struct Api {
    pub(super) app: Arc<App>,
    pub(super) router: Router,
}

impl Api {
    #[must_use]
    pub fn new(app: Arc<App>) -> Api {
        Api { router: router(app.surfaces).with_state(app.clone()), app }
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

pub(super) async fn answer(api: Api, mut request: Request) -> Result<Response, Infallible> {
    let began = Instant::now();
    // the console looks at it once it knows where its request goes
    if api.app.console.is_none() || !Console::serves(request.uri().path()) {
        without_slash(&mut request);
    }
    let id = RequestId::given(request.headers()).unwrap_or_else(RequestId::now);
    let trace = Arc::new(Trace::new(id.clone()));
    let method = request.method().clone();
    let (accepted, allowed_origin) =
        (compress::accepted(request.headers()), cors::allowed_origin(&request, &api.app.tenants));
    let if_none_match = entity_tags::if_none_match(&method, request.headers());
    let has_body = !request.body().is_end_stream();
    request.extensions_mut().insert(trace.clone());
    let app = api.app.clone();
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
            Ok(()) => match &app.console {
                Some(console) if Console::serves(request.uri().path()) => {
                    Ok(Box::pin(console.answer(api.router, request)).await)
                }
                _ => api.router.oneshot(request).await,
            },
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
