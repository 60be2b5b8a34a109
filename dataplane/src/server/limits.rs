//! How large a request may be, whatever its key: checked before the key.
//!
//! A body that comes with a GET is not read: hyper skips what has arrived already, or closes the connection. One that
//! does not announce its length is counted while it is read (`sent`).

use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use rowgate_core::problem::{Code, Problem};

/// The request line and all headers together, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// What hyper reads of them. Between the two limits Rowgate words the refusal; beyond, hyper answers a bare 431.
pub const MAX_READ_BYTES: usize = 2 * MAX_HEAD_BYTES;
/// The body, in bytes.
pub const MAX_BODY_BYTES: u64 = 1024 * 1024;

/// Refuses a request that is too large.
pub fn check(request: &Request) -> Result<(), Problem> {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if MAX_HEAD_BYTES < target {
        return Err(Problem::new(
            Code::UriTooLong,
            "the URL is longer than 16 KiB; use a shorter $filter or fewer options",
        ));
    }
    // Method, version and line ends of the first line; `: ` and the line end of each header.
    let line = request.method().as_str().len() + target + 12;
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    if MAX_HEAD_BYTES < line + headers.sum::<usize>() {
        return Err(Problem::new(
            Code::HeadersTooLarge,
            "the URL and the headers together are larger than 16 KiB; send fewer or shorter headers",
        ));
    }
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| MAX_BODY_BYTES < length) {
        return Err(Problem::new(Code::TooLarge, "the body is larger than 1 MiB; send less in one request"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn code(path: usize, header: usize, length: &str) -> Option<Code> {
        let request = Request::builder()
            .uri(format!("/{}", "x".repeat(path)))
            .header("x-filler", "x".repeat(header))
            .header(CONTENT_LENGTH, length)
            .body(Body::empty());
        check(&request.expect("a request")).err().map(|problem| problem.code)
    }

    #[test]
    fn what_is_too_large_is_told_apart() {
        assert_eq!(code(1, 1, "0"), None);
        assert_eq!(code(8000, 8000, "1048576"), None);
        assert_eq!(code(8300, 8300, "0"), Some(Code::HeadersTooLarge));
        assert_eq!(code(MAX_HEAD_BYTES, 1, "0"), Some(Code::UriTooLong));
        assert_eq!(code(1, 1, "1048577"), Some(Code::TooLarge));
    }
}
