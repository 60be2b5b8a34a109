//! The body of a request, read whole, up to the limit, once its key is known: a stranger's is not waited for.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body as _;
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::resolve::Only;
use tokio::time::timeout;

use crate::app::App;
use crate::auth::Caller;
use crate::bounds::BODY;
use crate::entity_tags::only;

/// A body that takes longer to arrive is not waited for.
const TIME: Duration = Duration::from_secs(30);

/// A request whose body nobody has read yet.
pub struct Coming(Request);

/// A body of JSON, or why it is none, to be told once the key is known to live; and what the caller prefers.
pub struct Sent {
    body: Result<Bytes, Problem>,
    /// No body was announced, nor of which type it is.
    is_absent: bool,
    /// `Prefer: return=minimal`
    pub is_minimal: bool,
    /// What `If-Match` and `If-None-Match` ask for, or what is wrong with them.
    pub only: Result<Only, Problem>,
}

impl FromRequest<Arc<App>> for Coming {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &Arc<App>) -> Result<Coming, Infallible> {
        Ok(Coming(request))
    }
}

impl Coming {
    /// The body, for a key that is remembered or found.
    ///
    /// # Errors
    /// 401 for a stranger, or 503 where nobody can tell.
    pub async fn of(self, caller: &Caller) -> Result<Sent, Problem> {
        // not counted against the rate limit: the write that follows is
        caller.tenant.recognize(&caller.credential).await?;
        let request = self.0;
        let is_minimal = prefers_minimal(request.headers());
        let only = only(request.headers());
        let is_absent = request.body().is_end_stream() && !request.headers().contains_key(CONTENT_TYPE);
        let refused = match request.headers() {
            headers if !is_json(headers) => {
                Some("send the header Content-Type: application/json with the body")
            }
            headers if !is_utf8(headers) => {
                Some("send the body in UTF-8, and leave charset out of Content-Type")
            }
            headers if is_encoded(headers) => Some("send the body as it is, without Content-Encoding"),
            _ => None,
        };
        // also what is refused, so that the connection serves on
        let read = read(request).await;
        let _first = read.as_ref().map(|_| caller.trace.body_is_read.set(()));
        let body = refused.map_or(read, |what| Err(Problem::new(Code::BadRequest, what)));
        Ok(Sent { body, is_absent, is_minimal, only })
    }
}

impl Sent {
    pub fn body(&self) -> Result<&[u8], Problem> {
        self.body.as_deref().map_err(Problem::clone)
    }

    /// As [`Sent::body`], where there may be none.
    pub fn body_if_any(&self) -> Result<Option<&[u8]>, Problem> {
        match (self.is_absent, &self.body) {
            (true, _) => Ok(None),
            (false, Ok(body)) if body.is_empty() => Ok(None),
            _ => self.body().map(Some),
        }
    }
}

async fn read(request: Request) -> Result<Bytes, Problem> {
    let limited = Limited::new(request.into_body(), usize::try_from(BODY).unwrap_or(usize::MAX));
    match timeout(TIME, limited.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Problem::new(Code::TooLarge, "the body is larger than 1 MiB; send less at once"))
        }
        Ok(Err(_)) => Err(Problem::new(Code::BadRequest, "the body broke off; send it whole")),
        Err(_) => Err(Problem::new(
            Code::BadRequest,
            "the body did not arrive within 30 s; send it faster, or less at once",
        )),
    }
}

/// `application/json`, whatever its parameters, or a type that ends in `+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let essence =
        value.to_str().ok().and_then(|text| text.split(';').next()).map(|it| it.trim().to_ascii_lowercase());
    essence.is_some_and(|it| it == "application/json" || it.ends_with("+json"))
}

/// `Content-Type` names no other charset.
fn is_utf8(headers: &HeaderMap) -> bool {
    let types = headers.get_all(CONTENT_TYPE).iter().filter_map(|value| value.to_str().ok());
    let charsets = types.flat_map(|it| it.split(';').skip(1)).filter_map(|it| named(it, "charset"));
    charsets.into_iter().all(|it| it.eq_ignore_ascii_case("utf-8") || it.eq_ignore_ascii_case("utf8"))
}

/// The value of `name=value`, quoted or not.
fn named<'a>(parameter: &'a str, name: &str) -> Option<&'a str> {
    let (found, value) = parameter.split_once('=')?;
    found.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"'))
}

/// It would have to be taken apart before its size is known.
fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

fn prefers_minimal(headers: &HeaderMap) -> bool {
    let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut preferences =
        values.flat_map(|value| unquoted(value, ',')).filter_map(|it| unquoted(it, ';').next());
    preferences.any(|it| named(it, "return").is_some_and(|it| it.eq_ignore_ascii_case("minimal")))
}

/// The parts between separators that stand in no quotes (RFC 9110, 5.6.4).
fn unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |char| {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => {}
        }
        char == separator && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
    }

    #[test]
    fn a_body_says_that_it_is_json() {
        for good in ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json"] {
            assert!(is_json(&headers("content-type", &[good])), "{good}");
        }
        for wrong in
            [&[][..], &["text/plain"], &["application/x-www-form-urlencoded"], &["application/json"; 2]]
        {
            assert!(!is_json(&headers("content-type", wrong)), "{wrong:?}");
        }
    }

    #[test]
    fn preferences_stand_beside_each_other() {
        for minimal in [
            &["return=minimal"][..],
            &[r#"x="a\\, b"; y="c", Return=Minimal; z"#],
            &["wait=5", "return=minimal"],
        ] {
            assert!(prefers_minimal(&headers("prefer", minimal)), "{minimal:?}");
        }
        for other in [
            &[][..],
            &["return=representation"],
            &["minimal"],
            &[r#"x="a, return=minimal""#],
            &[r#"x="a\", return=minimal""#],
            &["x; return=minimal"],
        ] {
            assert!(!prefers_minimal(&headers("prefer", other)), "{other:?}");
        }
    }
}
