//! `/api/auth/apikeys/exchange`: a token for a key; `/.well-known/jwks.json`: what others verify tokens with.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::http::request::Parts;
use axum::response::Response;
use hyper::body::Body as _;
use rowgate_core::jwt::Claims;
use rowgate_core::problem::{Code, Problem};
use rowgate_core::secret::Credential;
use serde::Serialize;

use crate::app::App;
use crate::auth::credential::Caller;
use crate::server::compress::Uncompressed;
use crate::server::respond::Refusal;
use crate::server::trace::Trace;

/// How long others may keep our public keys: a new one stands there for much longer before it signs.
const KEPT: HeaderValue = HeaderValue::from_static("public, max-age=300");

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Token {
    token: String,
    expires_in: i64,
}

/// `POST /api/auth/apikeys/exchange`: a token that lives for an hour, or as long as the key and its secret.
pub(crate) async fn exchange(
    caller: Caller,
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Refusal> {
    // A token would live for ever if it could be exchanged for the next.
    let Credential::Secret(_) = caller.credential else { return Err(Problem::unauthorized().into()) };
    let context = caller.authenticate_fresh().await?;
    if !request.body().is_end_stream() {
        let what = "an exchange takes no body; send only the header X-API-Key";
        return Err(Problem::new(Code::BadRequest, what).into());
    }
    let (key, tenant) = (&context.key, caller.tenant.slug.clone());
    // A key in its last second: a token would outlive it.
    if key.seconds_left < 1 {
        return Err(Problem::unauthorized().into());
    }
    let now = jiff::Timestamp::now().as_second();
    let claims = Claims::new(key.id.clone(), key.secret.clone(), tenant, now, key.seconds_left);
    let answer = Token { token: app.token_keys.sign(&claims)?, expires_in: claims.expires - claims.issued };
    let body = serde_json::to_vec(&answer).expect("texts and numbers are JSON");
    let mut response = Response::new(Body::from(body));
    response.extensions_mut().insert(Uncompressed);
    Ok(response)
}

/// `GET /.well-known/jwks.json`. The same for everybody, and no secret.
pub(crate) async fn public_keys(State(app): State<Arc<App>>, parts: Parts) -> Result<Response, Refusal> {
    Trace::of(&parts);
    let mut response = Response::new(Body::from(app.token_keys.jwks()?));
    response.headers_mut().insert(CACHE_CONTROL, KEPT);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use rowgate_core::signing::JWKS_MAX_AGE;

    use super::*;

    #[test]
    fn others_keep_the_public_keys_as_long_as_rotation_counts_on() {
        assert_eq!(KEPT.to_str().ok(), Some(&*format!("public, max-age={JWKS_MAX_AGE}")));
    }
}
