//! A request of the page as the API gets it: at its own address, with the key, and with nothing that the browser adds.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, IF_MATCH, IF_NONE_MATCH, TRANSFER_ENCODING,
};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Uri};
use rowgate_core::problem::{Code, Problem};
use rowgate_standalone::LiveKeys;

use crate::server::path;
use crate::server::respond::X_REQUEST_ID;
use crate::server::trace::Trace;

/// Then come the tenant, the name of the key, and an address of the API.
pub(super) const PREFIX: &str = "/console/proxy/";

/// What the API gets of a page's headers: no credential, cookie or `Origin`, and nothing of proxies.
const FORWARDED: [HeaderName; 11] = [
    HOST,
    ACCEPT,
    CONTENT_TYPE,
    CONTENT_LENGTH,
    CONTENT_ENCODING,
    TRANSFER_ENCODING,
    IF_MATCH,
    IF_NONE_MATCH,
    X_REQUEST_ID,
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("prefer"),
];

/// An address below [`PREFIX`].
#[derive(Debug, PartialEq, Eq)]
struct Target<'a> {
    tenant: &'a str,
    key: String,
    /// As it was written: the API decodes it.
    path: &'a str,
}

/// The request for the API.
pub(super) fn forwarded(keys: &LiveKeys, parts: Parts, body: Body) -> Result<Request, Problem> {
    let target = target(parts.uri.path())?;
    if shows_secret(&parts.method, target.path) {
        return Err(Problem::new(
            Code::Forbidden,
            "the answer to this request holds a secret, which the console gives to no page; send the request with curl and the \
             header X-API-Key",
        ));
    }
    let key = keys.find(target.tenant, &target.key).ok_or_else(|| {
        let what = "this key does not work any more, or there is none of this name; choose another one";
        Problem::new(Code::NotFound, what)
    })?;
    let path = path::without_slash(target.path).unwrap_or(target.path);
    let address = match parts.uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let address: Uri = address.parse().map_err(|_| outside())?;
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut()) = (parts.method, address);
    for name in FORWARDED {
        for value in parts.headers.get_all(&name) {
            request.headers_mut().append(&name, value.clone());
        }
    }
    let mut text = HeaderValue::try_from(key.reveal()).map_err(|_| Problem::internal())?;
    text.set_sensitive(true);
    request.headers_mut().insert("x-api-key", text);
    // of all that is known of the request, the API needs this only
    if let Some(trace) = parts.extensions.get::<Arc<Trace>>() {
        request.extensions_mut().insert(trace.clone());
    }
    Ok(request)
}

/// The tenant's own addresses, and those that name no tenant, which belong to the key's. No other: the exchange would give
/// the page a token.
fn target(path: &str) -> Result<Target<'_>, Problem> {
    let rest = path.strip_prefix(PREFIX).ok_or_else(outside)?;
    let (tenant, rest) = rest.split_once('/').ok_or_else(outside)?;
    let slash = rest.find('/').ok_or_else(outside)?;
    let (key, path) = rest.split_at(slash);
    let is_of =
        |start: &str| path.strip_prefix(start).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    let is_within = is_of(&format!("/auth/{tenant}/")) || is_of("/api/ddl/");
    // browsers take such parts away before they send a request, and other programs might on the way
    let climbs = path.split('/').any(|part| {
        path::decode(part)
            .map_or(true, |part| matches!(&*part, "." | "..") || part.contains("../") || part.contains('\\'))
    });
    if tenant.is_empty() || !is_within || climbs {
        return Err(outside());
    }
    Ok(Target { tenant, key: path::decode(key).map_err(|_| outside())?, path })
}

/// Whether the API answers with the secret of a webhook subscription: when one is made, and when it gets a new secret. It shows each
/// secret once; a page would keep it where scripts, extensions and the browser's tools read it.
fn shows_secret(method: &Method, path: &str) -> bool {
    let parts: Vec<String> = path.split('/').filter_map(|part| path::decode(part).ok()).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    let is_of_secrets = matches!(
        parts[..],
        ["api", "ddl", "events", "webhooks"] | ["api", "ddl", "events", "webhooks", _, "secret", ..]
    );
    is_of_secrets && *method != Method::GET
}

fn outside() -> Problem {
    Problem::new(
        Code::Forbidden,
        "the console forwards only requests to /auth/{tenant}/ of the key's tenant and to /api/ddl/",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_own_addresses_are_forwarded() {
        for (path, key, to) in [
            ("shop/north/auth/shop/api", "north", "/auth/shop/api"),
            ("shop/north/auth/shop/api/orders/id/7", "north", "/auth/shop/api/orders/id/7"),
            ("shop/a%2Fb/auth/shop/graphql", "a/b", "/auth/shop/graphql"),
            ("shop/north/api/ddl/aggregates/orders", "north", "/api/ddl/aggregates/orders"),
            ("shop/north/auth/shop/api/labels/name//", "north", "/auth/shop/api/labels/name//"),
            ("shop/north/auth/shop/api/labels/name/a%2Fb", "north", "/auth/shop/api/labels/name/a%2Fb"),
        ] {
            let path = format!("{PREFIX}{path}");
            assert_eq!(
                target(&path).ok(),
                Some(Target { tenant: "shop", key: key.into(), path: to }),
                "{path}"
            );
        }
    }

    #[test]
    fn nothing_else_is() {
        for path in [
            "",
            "shop",
            "shop/north",
            "shop/north/",
            "/north/auth//api",
            "shop/north/auth/other/api",
            "shop/north/auth/SHOP/api",
            "shop/north/auth/%73hop/api",
            "shop/north/auth/shop",
            "shop/north/auth/shop/",
            "shop/north/auth/shop//api",
            "shop/north//auth/shop/api",
            "shop/north/auth//shop/api",
            "shop/north/api/auth/apikeys/exchange",
            "shop/north/api/ddl/../auth/apikeys/exchange",
            "shop/north/auth/shop/../other/api",
            "shop/north/auth/shop/%2e%2e/other/api",
            "shop/north/auth/shop/.%2E/other/api",
            "shop/north/auth/shop/..%2fother/api",
            "shop/north/auth/shop/..%5cother/api",
            "shop/north/auth/shop/%zz",
            "shop/north/.well-known/jwks.json",
            "shop/north/console/proxy/shop/north/auth/shop/api",
            "shop/%ff/auth/shop/api",
        ] {
            let refused = target(&format!("{PREFIX}{path}")).expect_err(path);
            assert_eq!(refused.code, Code::Forbidden, "{path}");
        }
    }

    #[test]
    fn what_is_answered_with_a_secret_is_not_forwarded() {
        for (method, path, shows) in [
            (Method::POST, "/api/ddl/events/webhooks", true),
            (Method::POST, "/api/ddl/events/webhooks/", true),
            (Method::POST, "/api/ddl//events/%77ebhooks", true),
            (Method::POST, "/api/ddl/events/webhooks/01k/secret/rotate", true),
            (Method::PUT, "/api/ddl/events/webhooks/01k/%73ecret", true),
            (Method::GET, "/api/ddl/events/webhooks", false),
            (Method::PATCH, "/api/ddl/events/webhooks/01k", false),
            (Method::POST, "/api/ddl/events/webhooks/01k/replay", false),
            (Method::POST, "/api/ddl/events/webhooks/01k/dead-letters/redrive", false),
            (Method::POST, "/auth/shop/api/webhooks", false),
        ] {
            assert_eq!(shows_secret(&method, path), shows, "{method} {path}");
        }
    }
}
