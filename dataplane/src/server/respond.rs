//! Answers of every surface: problems, and the headers that every answer carries.

use axum::body::Body;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use rowgate_core::name::Ulid;
use rowgate_core::problem::{Code, Problem};
use rowgate_program::entropy;
use serde_json::json;

/// The header that carries a request's id, both ways.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const VARIES: HeaderValue =
    HeaderValue::from_static("X-API-Key, Authorization, X-MS-API-ROLE, Accept-Encoding, Origin");
/// Seconds after which a 503 is worth another try: a replica looks at a tenant's database each second.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// The id of one request: the caller's own where it is 1 to 64 safe characters, else one of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The caller's id, if it sent exactly one that may be logged and echoed.
    #[must_use]
    pub fn given(headers: &HeaderMap) -> Option<RequestId> {
        let mut values = headers.get_all(X_REQUEST_ID).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let safe = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.' | b':');
        let bytes = value.as_bytes();
        ((1..=64).contains(&bytes.len()) && bytes.iter().all(safe)).then(|| RequestId(value.clone()))
    }

    #[must_use]
    pub fn new(id: Ulid) -> RequestId {
        let text = String::from(id);
        RequestId(HeaderValue::try_from(text).expect("a ULID is letters and digits"))
    }

    /// A new id.
    #[must_use]
    pub fn now() -> RequestId {
        RequestId::new(entropy::ulid())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.to_str().expect("only safe characters were let in")
    }
}

/// Of an answer that is not plain JSON, its `Content-Type`.
#[derive(Clone)]
pub(crate) struct MediaType(pub(crate) HeaderValue);

/// A problem on its way out. [`finish`] writes its body, because the request's id belongs in it.
pub struct Refusal(pub Problem);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Refusal {
        Refusal(problem)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status(self.0.code);
        if let Some(allow) = self.0.allow {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
        }
        response.extensions_mut().insert(self.0);
        response
    }
}

/// Completes an answer: a problem's body, and the headers that all answers share.
#[must_use]
pub fn finish(mut response: Response, request: &RequestId) -> Response {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        *response.body_mut() = Body::from(problem_json(&problem, request));
        // The router counted the empty body; with two lengths hyper panics.
        response.headers_mut().remove(CONTENT_LENGTH);
        // The router adds it to whatever is answered to a method that it does not know.
        if response.status() != StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().remove(ALLOW);
        }
        if let Some(seconds) = problem.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        match problem.code {
            Code::Unauthorized => {
                let scheme = HeaderValue::from_static("ApiKey realm=\"rowgate\", Bearer realm=\"rowgate\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            }
            Code::Unavailable => {
                response.headers_mut().insert(RETRY_AFTER, RETRY_SECONDS);
            }
            _ => {}
        }
    }
    let label = response.extensions_mut().remove::<MediaType>();
    let is_bare = response.status() == StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    if !is_bare {
        headers.insert(CONTENT_TYPE, label.map_or(JSON, |MediaType(label)| label));
    }
    // Only an answer that is the same for everybody says otherwise.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-store"));
    headers.insert(VARY, VARIES);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_REQUEST_ID, request.0.clone());
    response
}

fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(code.status()).expect("every code has a status between 400 and 504")
}

pub(crate) fn problem_json(problem: &Problem, request: &RequestId) -> String {
    json!({"error": {
        "code": problem.code,
        "message": problem.message,
        "status": problem.code.status(),
        "requestId": request.as_str(),
        "details": problem.details,
    }})
    .to_string()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn body(response: Response) -> String {
        let bytes = response.into_body().collect().await.expect("a body in memory").to_bytes();
        String::from_utf8(bytes.to_vec()).expect("JSON")
    }

    fn id() -> RequestId {
        RequestId::new(Ulid::from_parts(1, [0; 10]))
    }

    #[tokio::test]
    async fn every_answer_carries_the_shared_headers() {
        let response = finish(Refusal(Problem::unauthorized()).into_response(), &id());
        assert_eq!(response.status(), 401);
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().expect("text"));
        assert_eq!(header("content-type"), Some("application/json; charset=utf-8"));
        assert_eq!(header("cache-control"), Some("private, no-store"));
        assert_eq!(header("vary"), Some("X-API-Key, Authorization, X-MS-API-ROLE, Accept-Encoding, Origin"));
        assert_eq!(header("x-content-type-options"), Some("nosniff"));
        assert_eq!(header("x-request-id"), Some(id().as_str()));
        assert_eq!(header("www-authenticate"), Some("ApiKey realm=\"rowgate\", Bearer realm=\"rowgate\""));
        assert_eq!(header("retry-after"), None);
        let busy = finish(Refusal(Problem::unavailable()).into_response(), &id());
        assert_eq!(busy.headers().get("retry-after").map(HeaderValue::as_bytes), Some(&b"1"[..]));
    }

    #[tokio::test]
    async fn a_problem_is_told_in_one_shape() {
        let problem = Problem::new(Code::UnknownField, "no \"x\"").detail("did you mean y?");
        assert_eq!(
            body(finish(Refusal(problem).into_response(), &id())).await,
            r#"{"error":{"code":"UnknownField","message":"no \"x\"","status":400,"requestId":"00000000010000000000000000","details":["did you mean y?"]}}"#
        );
    }

    #[test]
    fn a_callers_id_is_kept_only_when_it_is_safe() {
        let given = |texts: &[&str]| {
            let mut headers = HeaderMap::new();
            for text in texts {
                headers.append(X_REQUEST_ID, HeaderValue::from_str(text).expect("a header"));
            }
            RequestId::given(&headers).map(|id| id.as_str().to_owned())
        };
        assert_eq!(given(&["a-B_9.:"]), Some("a-B_9.:".to_owned()));
        assert_eq!(given(&[&"x".repeat(64)]), Some("x".repeat(64)));
        for wrong in [&[][..], &[""], &["a b"], &["ä"], &["a\"b"], &[&"x".repeat(65)], &["a", "b"]] {
            assert_eq!(given(wrong), None, "{wrong:?}");
        }
    }
}
