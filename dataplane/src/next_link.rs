//! The absolute address of the next page: this request's own, with another `$after`.

use axum::http::header::HOST;
use axum::http::request::Parts;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rowgate_core::problem::{Code, Problem};

/// What may not stand bare in a query or path (RFC 3986), besides `%`, which is an escape already.
const NOT_IN_URL: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b'#');

/// What may not stand bare in the value of an option.
const NOT_IN_VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// `http://host[:port]` of this request: what the caller dialled, as its Host header says.
pub fn origin(parts: &Parts) -> Result<String, Problem> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let host = match (parts.uri.authority(), hosts.next(), hosts.next()) {
        (Some(authority), _, None) => authority.as_str(),
        (None, Some(host), None) => host.to_str().unwrap_or_default(),
        _ => "",
    };
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    if host.is_empty() || 255 < host.len() || !host.bytes().all(allowed) {
        return Err(Problem::new(
            Code::BadRequest,
            "send one Host header with the name and port of this server",
        ));
    }
    Ok(format!("http://{host}"))
}

/// The request's address with `$after` replaced by `token`. All other options stay as they were written.
/// The result needs no escaping in a JSON string.
#[must_use]
pub fn next_link(origin: &str, path: &str, query: Option<&str>, token: &str) -> String {
    let kept = query.unwrap_or_default().split('&').filter(|option| !option.is_empty() && !is_after(option));
    let mut link = format!("{origin}{}?", utf8_percent_encode(path, NOT_IN_URL));
    for option in kept {
        link.extend(utf8_percent_encode(option, NOT_IN_URL));
        link.push('&');
    }
    link.push_str("$after=");
    link.extend(utf8_percent_encode(token, NOT_IN_VALUE));
    link
}

fn is_after(option: &str) -> bool {
    let name = option.split('=').next().unwrap_or_default();
    percent_decode_str(name).eq(b"$after".iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(hosts: &[&str]) -> Result<String, Problem> {
        let mut request = axum::http::Request::builder().uri("/auth/shop/api/orders");
        for host in hosts {
            request = request.header(HOST, *host);
        }
        origin(&request.body(()).expect("a request").into_parts().0)
    }

    #[test]
    fn the_origin_is_one_host_of_plain_characters() {
        assert_eq!(host(&["shop.example:8080"]).expect("good"), "http://shop.example:8080");
        assert_eq!(host(&["[::1]:8080"]).expect("good"), "http://[::1]:8080");
        for wrong in [&[][..], &[""], &["a", "b"], &["a/b"], &["a\"b"], &["user@a"]] {
            assert!(host(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn after_is_replaced_and_all_else_stays_as_written() {
        let link = |query| next_link("http://h", "/auth/shop/api/o", query, "A-b_9+=");
        assert_eq!(link(None), "http://h/auth/shop/api/o?$after=A-b_9%2B%3D");
        assert_eq!(
            link(Some("$filter=a%20eq%20'x%26y'&$after=old&$first=2")),
            "http://h/auth/shop/api/o?$filter=a%20eq%20'x%26y'&$first=2&$after=A-b_9%2B%3D"
        );
        assert_eq!(
            link(Some("%24after=old&&x=\"{\"")),
            "http://h/auth/shop/api/o?x=%22%7B%22&$after=A-b_9%2B%3D"
        );
    }
}
