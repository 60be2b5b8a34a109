//! Pages of other origins: their browsers are answered where the Tenant in the path lists the origin, else not at all.
//!
//! A preflight carries no key. An unknown tenant, one that lists no origin and one that lists others get one answer, so
//! that only who names a listed origin learns of a tenant. `Access-Control-Allow-Credentials` is never sent: keys and
//! tokens are headers that the page adds itself. Every answer to a listed origin carries the header, refusals too: a
//! page could not show them to its user otherwise.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use rowgate_core::name::TenantSlug;
use rowgate_core::problem::{Code, Problem};

use crate::server::path;
use crate::tenants::registry::{TenantMatch, TenantRegistry};

/// What a page may send. `Accept-Encoding` and the like are the browser's own.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "X-API-Key, Authorization, X-MS-API-ROLE, X-Request-Id, Content-Type, Prefer, If-Match, If-None-Match",
);
/// What a page may read besides the body.
const RESPONSE_HEADERS: HeaderValue =
    HeaderValue::from_static("X-Request-Id, Retry-After, Location, Allow, WWW-Authenticate, ETag");
/// Seconds for which a browser need not ask again.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// In the extensions of a request: the tenant in its path lists its origin. Holds what the answer says.
#[derive(Debug, Clone)]
pub struct AllowedOrigin(HeaderValue);

/// `None`: no browser asks, or one of an origin that the tenant does not list.
pub fn allowed_origin(request: &Request, tenants: &TenantRegistry) -> Option<AllowedOrigin> {
    let mut origins = request.headers().get_all(ORIGIN).iter();
    let (Some(origin), None) = (origins.next(), origins.next()) else { return None };
    let (slug, _) = request.uri().path().strip_prefix("/auth/")?.split_once('/')?;
    let slug: TenantSlug = path::decode(slug).ok()?.parse().ok()?;
    // Nothing is loaded for a stranger: a catalog that is not there yet lists nothing. One that stands in is asked in vain.
    let TenantMatch { tenant, is_named } = tenants.find(&slug).ok()??;
    let listed = match tenant.lists_origin(|listed| listed == "*") {
        true => Some(AllowedOrigin(HeaderValue::from_static("*"))),
        false => tenant
            .lists_origin(|listed| listed.as_bytes() == origin.as_bytes())
            .then(|| AllowedOrigin(origin.clone())),
    };
    listed.filter(|_| is_named)
}

impl AllowedOrigin {
    /// Lets the page read an answer.
    pub fn allow(self, headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
    }
}

/// The headers, beside `Allow`, of the answer to a preflight; `None`: the OPTIONS is no preflight.
pub fn preflight(parts: &Parts, methods: &HeaderValue) -> Option<Result<HeaderMap, Problem>> {
    let is_one =
        parts.headers.contains_key(ORIGIN) && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if !is_one {
        return None;
    }
    if parts.extensions.get::<AllowedOrigin>().is_none() {
        return Some(Err(Problem::new(
            Code::Forbidden,
            "pages of this origin may not call this URL; list the origin in spec.cors.origins of the Tenant",
        )));
    }
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, methods.clone()),
        (ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
        (ACCESS_CONTROL_MAX_AGE, MAX_AGE),
    ];
    Some(Ok(headers.into_iter().collect()))
}
