//! The request of a delivery, in the form in which it stands on the wire.

use axum::http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use bytes::Bytes;
use http_body_util::Full;
use rowgate_core::webhook::destination::{Destination, Policy, Refusal};

use super::SendFailure;

/// What the connection sets itself.
const OF_THE_CONNECTION: [HeaderName; 8] =
    [CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// A `POST` of `body` with `headers`, but for those that say where a message ends or goes.
pub(super) fn of(
    destination: &Destination,
    policy: &Policy,
    mut headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, SendFailure> {
    let refused = |refusal: Refusal| SendFailure::Refused(refusal.to_string());
    if !destination.is_https() && !policy.allow_http {
        return Err(refused(Refusal::PlainHttp));
    }
    for name in OF_THE_CONNECTION {
        headers.remove(name);
    }
    let url = destination.url();
    let host = match url.port() {
        Some(port) => format!("{}:{port}", destination.host()),
        None => destination.host().to_owned(),
    };
    headers.insert(HOST, HeaderValue::try_from(host).map_err(|_| refused(Refusal::HostName))?);
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = target.parse().map_err(|_| refused(Refusal::Unreadable))?;
    *request.headers_mut() = headers;
    Ok(request)
}
