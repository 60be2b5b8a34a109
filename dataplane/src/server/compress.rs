//! Answers above 1 KiB, compressed as the caller's `Accept-Encoding` prefers: zstd, br or gzip.
//!
//! An attacker who can have text of its own written beside a secret, and see how long answers are, finds the secret out
//! of what compression saves (BREACH). Callers' keys never stand in bodies, and they are headers that no browser adds by
//! itself, so that no page can make another client send them. The one body that holds a secret, the token of an exchange, goes out as
//! it is whatever its size: see [`Uncompressed`].

use std::convert::Infallible;
use std::future::{Ready, ready};

use axum::body::Body;
use axum::http::header::ACCEPT_ENCODING;
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version};
use axum::response::Response;
use hyper::body::Body as _;
use tower::{ServiceExt as _, service_fn};
use tower_http::compression::Compression;

/// Smaller bodies fit a packet or two as they are.
const LARGE: u64 = 1024;

/// In the extensions of an answer: not to be compressed.
#[derive(Debug, Clone, Copy)]
pub struct Uncompressed;

/// What a request says it can read; `None`: only what is not compressed.
pub fn accepted(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut lines = headers.get_all(ACCEPT_ENCODING).iter();
    let first = lines.next()?;
    let more: Vec<&HeaderValue> = lines.collect();
    if more.is_empty() {
        return Some(first.clone());
    }
    let all: Vec<&[u8]> = [first].into_iter().chain(more).map(HeaderValue::as_bytes).collect();
    HeaderValue::from_bytes(&all.join(&b", "[..])).ok()
}

/// Compresses the body of an answer while it is sent. A body of unknown size counts as large.
pub async fn compressed(response: Response, accepted: Option<HeaderValue>) -> Response {
    let is_small = response.body().size_hint().exact().is_some_and(|size| size <= LARGE);
    let Some(accepted) = accepted.filter(|_| !is_small) else { return response };
    if response.extensions().get::<Uncompressed>().is_some() {
        return response;
    }
    let mut request = axum::http::Request::new(());
    request.headers_mut().insert(ACCEPT_ENCODING, accepted);
    let mut answer = Some(response);
    let inner = service_fn(move |_: axum::http::Request<()>| -> Ready<Result<Response, Infallible>> {
        ready(Ok(answer.take().expect("one answer is asked for, once")))
    });
    let always = |_: StatusCode, _: Version, _: &HeaderMap, _: &Extensions| true;
    let Ok(response) = Compression::new(inner).compress_when(always).oneshot(request).await;
    response.map(Body::new)
}

#[cfg(test)]
mod tests {
    use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
    use bytes::Bytes;
    use futures_util::stream;

    use super::*;

    async fn encoding(response: Response, accept: &str) -> Option<String> {
        let accepted = Some(HeaderValue::from_str(accept).expect("a header"));
        let response = compressed(response, accepted).await;
        let encoding = response.headers().get(CONTENT_ENCODING)?;
        assert!(!response.headers().contains_key(CONTENT_LENGTH));
        Some(encoding.to_str().expect("a name").to_owned())
    }

    fn answer(bytes: u64) -> Response {
        let size = usize::try_from(bytes).expect("a small number");
        let mut response = Response::new(Body::from(vec![b'x'; size]));
        response.headers_mut().insert(CONTENT_LENGTH, bytes.into());
        response
    }

    #[tokio::test]
    async fn the_caller_chooses_among_three() {
        for (accept, chosen) in [
            ("gzip", Some("gzip")),
            ("GZIP", Some("gzip")),
            ("br", Some("br")),
            ("zstd", Some("zstd")),
            ("gzip, deflate, br, zstd", Some("zstd")),
            ("gzip;q=0.9, br;q=0.8, zstd;q=0.1", Some("gzip")),
            ("gzip; q=0.5, br; q=0.6", Some("br")),
            ("gzip;q=0, br;q=0", None),
            ("gzip;q=2, br;q=x", None),
            ("identity, gzip;q=0.5", None),
            ("deflate, compress", None),
            ("", None),
        ] {
            assert_eq!(encoding(answer(LARGE + 1), accept).await.as_deref(), chosen, "{accept}");
        }
    }

    #[tokio::test]
    async fn small_answers_and_secrets_go_out_as_they_are() {
        assert_eq!(encoding(answer(LARGE), "gzip").await, None);
        let mut secret = answer(LARGE + 1);
        secret.extensions_mut().insert(Uncompressed);
        assert_eq!(encoding(secret, "gzip").await, None);
    }

    #[tokio::test]
    async fn a_streamed_answer_counts_as_large() {
        let pieces = [Ok::<_, Infallible>(Bytes::from_static(b"a")), Ok(Bytes::from_static(b"b"))];
        let streamed = Response::new(Body::from_stream(stream::iter(pieces)));
        assert_eq!(encoding(streamed, "br").await.as_deref(), Some("br"));
    }

    #[test]
    fn several_lines_are_one_list() {
        let mut headers = HeaderMap::new();
        assert_eq!(accepted(&headers), None);
        headers.append(ACCEPT_ENCODING, HeaderValue::from_static("gzip;q=0.5"));
        assert_eq!(accepted(&headers).as_ref(), headers.get(ACCEPT_ENCODING));
        headers.append(ACCEPT_ENCODING, HeaderValue::from_static("br"));
        assert_eq!(accepted(&headers), Some(HeaderValue::from_static("gzip;q=0.5, br")));
    }
}
