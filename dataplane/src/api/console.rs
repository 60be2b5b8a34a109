//! The console: a page for the browser of a developer, at `/` of standalone mode. Never in `serve`: a browser must not hold
//! a key.
//!
//! The page gets its files from here, a list of the keys without their texts, and an address below which `proxy` adds a key
//! to a request. `guard` lets only that page ask. It is no part of the table of routes: nothing of it is an API.

mod assets;
mod guard;
mod proxy;

use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, X_FRAME_OPTIONS};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use rowgate_core::problem::{Code, Problem};
use rowgate_standalone::LiveKeys;
use serde_json::json;
use tower::ServiceExt as _;

use self::assets::Assets;
use self::guard::Part;
use crate::server::compress::Uncompressed;
use crate::server::respond::{MediaType, Refusal};
use crate::server::trace::Trace;

/// Nothing is loaded from elsewhere, no text is run as a script, and no page may frame this one. Editors write styles inline
/// and run their checks in workers.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; worker-src 'self' blob:; style-src 'self' 'unsafe-inline'; font-src 'self' data:; \
     img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Everything that the console answers with.
#[derive(Debug)]
pub struct Console {
    /// The port that is bound: a page that was loaded under another name or port is not ours.
    port: u16,
    files: ConsoleFiles,
    keys: LiveKeys,
}

/// The page, or the sentence that stands in its place.
#[derive(Debug)]
pub struct ConsoleFiles(Result<Assets, String>);

impl ConsoleFiles {
    /// What `make console` has put into `folder`.
    #[must_use]
    pub fn read(folder: Option<&Path>) -> ConsoleFiles {
        ConsoleFiles(Assets::read(folder))
    }

    /// Why the page cannot be shown.
    #[must_use]
    pub fn lacks(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }
}

impl Console {
    #[must_use]
    pub fn new(port: u16, files: ConsoleFiles, keys: LiveKeys) -> Console {
        Console { port, files, keys }
    }

    /// Whether the console answers at this path, and not the API.
    pub(super) fn serves(path: &str) -> bool {
        path == "/" || path == "/console" || path.starts_with("/console/")
    }

    /// The answer to a request at such a path; what the page asks of the API goes to `api`.
    pub(super) async fn answer(&self, api: Router, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let mut response = match self.part(&parts) {
            Ok(Answered::Here(response)) => response,
            Ok(Answered::Api) => match proxy::forwarded(&self.keys, parts, body) {
                Ok(request) => match api.oneshot(request).await {
                    Ok(response) => response,
                    Err(never) => match never {},
                },
                Err(problem) => Refusal(problem).into_response(),
            },
            Err(problem) => Refusal(problem).into_response(),
        };
        let headers = response.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, POLICY);
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
        headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
        response
    }

    fn part(&self, parts: &Parts) -> Result<Answered, Problem> {
        Trace::of(parts);
        let path = parts.uri.path();
        let is_proxied = path.starts_with(proxy::PREFIX);
        let part = if is_proxied || path == "/console/keys.json" { Part::Data } else { Part::Page };
        guard::check(self.port, part, parts)?;
        if is_proxied {
            return Ok(Answered::Api);
        }
        if parts.method != Method::GET {
            return Err(Problem::new(Code::NotFound, "the console has no such address for this method"));
        }
        match path {
            "/console/keys.json" => Ok(Answered::Here(self.key_list())),
            "/" => self.asset("index.html"),
            other => self.asset(other.strip_prefix("/console/assets/").unwrap_or_default()),
        }
    }

    fn asset(&self, name: &str) -> Result<Answered, Problem> {
        let answer = match &self.files.0 {
            Ok(assets) => {
                let nothing = || Problem::new(Code::NotFound, "the console has no file of this name");
                let (bytes, media) = assets.find(name).ok_or_else(nothing)?;
                answer(StatusCode::OK, media, Body::from(bytes))
            }
            Err(why) => {
                answer(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", Body::from(format!("{why}\n")))
            }
        };
        Ok(Answered::Here(answer))
    }

    /// The keys that work now, by tenant and name. Their texts stay here.
    fn key_list(&self) -> Response {
        let keys: Vec<_> = self
            .keys
            .list()
            .into_iter()
            .map(|key| json!({"tenant": key.tenant, "name": key.name, "role": key.role, "scoped": key.is_scoped}))
            .collect();
        answer(StatusCode::OK, "application/json; charset=utf-8", Body::from(json!(keys).to_string()))
    }
}

enum Answered {
    Here(Response),
    /// By the API, with a key.
    Api,
}

/// Within one machine, time spent on compressing is lost.
fn answer(status: StatusCode, media: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.extensions_mut().insert(MediaType(HeaderValue::from_static(media)));
    response.extensions_mut().insert(Uncompressed);
    response
}
