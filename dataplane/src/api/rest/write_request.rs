//! The body of a request, read whole, up to the limit, once its key is known and may do what it asks for: nobody else's is
//! waited for. Its memory is taken from [`BodyMemory`](crate::server::body_memory::BodyMemory) as it comes, never as it was announced.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT};
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::resolve::Precondition;
use tokio::time::timeout;

use crate::api::rest::entity_tags::precondition;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::retry;
use crate::server::body_memory::BodyReservation;
use crate::server::limits::MAX_BODY_BYTES;

/// A body that takes longer to arrive is not waited for.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The least and the most memory that is taken at once for more of a body, where more is announced.
const MIN_PIECE: usize = 4 << 10;
const MAX_PIECE: usize = 64 << 10;

/// A request whose body is not read yet.
pub struct UnreadBody {
    head: Head,
    body: Body,
}

/// What is known of a write before its body.
pub struct Head {
    /// Why the body would be none, whatever it holds.
    unfit: Option<&'static str>,
    /// No body was announced, nor of which type it is.
    is_absent: bool,
    /// The client waits for leave to send its body.
    waits: bool,
    /// `Prefer: return=minimal`
    pub is_minimal: bool,
    /// What `If-Match` and `If-None-Match` ask for, or what is wrong with them.
    pub precondition: Result<Precondition, Problem>,
}

/// A body of JSON, or why it is none, which is answered only to a live key; and what the caller prefers.
pub struct WriteRequest {
    pub head: Head,
    body: Result<(Vec<u8>, BodyReservation), Problem>,
}

impl<S: Sync> FromRequest<S> for UnreadBody {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<UnreadBody, Infallible> {
        let head = Head::of(request.headers(), request.body());
        Ok(UnreadBody { head, body: request.into_body() })
    }
}

impl Head {
    fn of(headers: &HeaderMap, body: &Body) -> Head {
        let unfit = match headers {
            headers if !is_json(headers) => {
                Some("send the header Content-Type: application/json with the body")
            }
            headers if !is_utf8(headers) => {
                Some("send the body in UTF-8, and leave charset out of Content-Type")
            }
            headers if is_encoded(headers) => Some("send the body uncompressed, without Content-Encoding"),
            _ => None,
        };
        Head {
            unfit,
            is_absent: body.is_end_stream() && !headers.contains_key(CONTENT_TYPE),
            waits: headers.contains_key(EXPECT),
            is_minimal: prefers_minimal(headers),
            precondition: precondition(headers),
        }
    }

    /// Refuses a body that would be none.
    pub fn fits(&self) -> Result<(), Problem> {
        self.unfit.map_or(Ok(()), |what| Err(Problem::new(Code::BadRequest, what)))
    }

    /// As [`Head::fits`], where there may be none.
    pub fn fits_if_any(&self) -> Result<(), Problem> {
        if self.is_absent { Ok(()) } else { self.fits() }
    }
}

impl UnreadBody {
    /// The body, for a key that lives and `may` send it, as far as that can be said before it.
    ///
    /// # Errors
    /// What `may` says, 401 for a stranger, 429 for a key that asks too often, or 503 where that is unknown. Then the body is
    /// not waited for.
    pub async fn receive(
        mut self,
        caller: &Caller,
        may: impl Fn(&KeyContext, &Head) -> Result<(), Problem> + Send + Sync,
    ) -> Result<WriteRequest, Problem> {
        let context = match retry::may(caller, |context| may(context, &self.head)).await {
            Ok(context) => context,
            Err(problem) => {
                self.discard(caller);
                return Err(problem);
            }
        };
        let body = match timeout(BODY_TIMEOUT, read(self.body, caller, &context)).await {
            Ok(read) => read,
            Err(_) => Err(Problem::new(
                Code::BadRequest,
                "the body did not arrive within 30 s; send it faster, or send less",
            )),
        };
        let _first = body.as_ref().map(|_| caller.trace.body_is_read.set(()));
        Ok(WriteRequest { head: self.head, body })
    }

    /// Drops a body that is here already, so that the connection serves on. Nothing is waited for.
    fn discard(&mut self, caller: &Caller) {
        if !self.head.waits && !self.body.is_end_stream() {
            let _dropped = self.body.frame().now_or_never();
        }
        if self.body.is_end_stream() {
            let _first = caller.trace.body_is_read.set(());
        }
    }
}

impl WriteRequest {
    pub fn body(&self) -> Result<&[u8], Problem> {
        self.head.fits()?;
        self.body.as_ref().map(|(body, _)| body.as_slice()).map_err(Problem::clone)
    }

    /// Takes memory for a statement of `n` bytes beside that of the body.
    ///
    /// # Errors
    /// As of `Caller::hold`.
    pub(crate) fn reserve(&self, n: usize) -> Result<(), Problem> {
        match &self.body {
            Ok((body, reservation)) => reservation.grow_to(body.capacity() + n),
            Err(_) => Ok(()),
        }
    }

    /// As [`WriteRequest::body`], where there may be none.
    pub fn body_if_any(&self) -> Result<Option<&[u8]>, Problem> {
        match (self.head.is_absent, &self.body) {
            (true, _) => Ok(None),
            (false, Ok((body, _))) if body.is_empty() => Ok(None),
            _ => self.body().map(Some),
        }
    }
}

/// A body of so many bytes, and the statement that is mostly made of it: text and JSON take as much again.
fn with_statement(size: usize) -> usize {
    2 * size + size / 8 + 1024
}

/// All of it, in memory that was taken for it and for the statement that is made of it.
async fn read(
    mut body: Body,
    caller: &Caller,
    context: &KeyContext,
) -> Result<(Vec<u8>, BodyReservation), Problem> {
    let (mut pieces, reservation) = (Pieces::default(), caller.reserve(context, 0)?);
    let limit = usize::try_from(MAX_BODY_BYTES).unwrap_or(usize::MAX);
    let announced = body.size_hint().exact().and_then(|size| usize::try_from(size).ok());
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|_| Problem::new(Code::BadRequest, "the body ended early; send all of it"))?;
        let Ok(data) = frame.into_data() else { continue };
        if limit < pieces.len + data.len() {
            return Err(Problem::new(
                Code::TooLarge,
                "the body is larger than 1 MiB; send less in one request",
            ));
        }
        let mut rest = &data[..];
        while !rest.is_empty() {
            if pieces.room() == 0 {
                let left = announced.unwrap_or(limit).saturating_sub(pieces.len).max(1);
                let size = pieces.len.clamp(MIN_PIECE, MAX_PIECE).min(left);
                reservation.grow_to(with_statement(pieces.size + size))?;
                pieces.add(size);
            }
            let (now, then) = rest.split_at(rest.len().min(pieces.room()));
            pieces.take(now);
            rest = then;
        }
    }
    Ok((pieces.whole(), reservation))
}

/// What has come of a body, copied: hyper gives pieces of its buffers, and one of a byte would keep 8 KiB. Of few sizes, so that
/// what one body leaves is of use to the next.
#[derive(Default)]
struct Pieces {
    pieces: Vec<Vec<u8>>,
    len: usize,
    size: usize,
}

impl Pieces {
    /// How much the last piece still takes.
    fn room(&self) -> usize {
        self.size - self.len
    }

    fn add(&mut self, size: usize) {
        self.pieces.push(Vec::with_capacity(size));
        self.size += size;
    }

    fn take(&mut self, bytes: &[u8]) {
        if let Some(last) = self.pieces.last_mut() {
            last.extend_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    fn whole(mut self) -> Vec<u8> {
        match self.pieces.pop() {
            Some(only) if self.pieces.is_empty() => only,
            last => {
                self.pieces.extend(last);
                self.pieces.concat()
            }
        }
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
