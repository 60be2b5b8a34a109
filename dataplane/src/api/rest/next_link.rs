//! The absolute address of the next page: this request's own, with another `$after`.

use axum::http::HeaderName;
use axum::http::header::HOST;
use axum::http::request::Parts;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use rowgate_core::percent;
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::rest::query_string;

use crate::server::proxies::{X_FORWARDED_HOST, X_FORWARDED_PROTO};

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

/// `scheme://host[:port]` of this request: what the caller dialled, as its Host header says, or as a trusted proxy does.
/// Headers of other proxies were taken out at the door.
///
/// A value that is not what it should be is refused: a link of another scheme or host would lead keys astray.
pub fn origin(parts: &Parts) -> Result<String, Problem> {
    let scheme = match only(parts, &X_FORWARDED_PROTO)? {
        None => "http",
        Some(proto) if proto.eq_ignore_ascii_case("http") => "http",
        Some(proto) if proto.eq_ignore_ascii_case("https") => "https",
        Some(_) => return Err(unfit(&X_FORWARDED_PROTO)),
    };
    let host = match only(parts, &X_FORWARDED_HOST)? {
        Some(host) if is_host(host) => host,
        Some(_) => return Err(unfit(&X_FORWARDED_HOST)),
        None => dialled(parts).filter(|host| is_host(host)).ok_or_else(|| {
            Problem::new(Code::BadRequest, "send one Host header with the name and port of this server")
        })?,
    };
    Ok(format!("{scheme}://{host}"))
}

fn dialled(parts: &Parts) -> Option<&str> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    match (parts.uri.authority(), hosts.next(), hosts.next()) {
        (Some(authority), _, None) => Some(authority.as_str()),
        (None, Some(host), None) => host.to_str().ok(),
        _ => None,
    }
}

fn is_host(text: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    (1..=255).contains(&text.len()) && text.bytes().all(allowed)
}

fn only<'a>(parts: &'a Parts, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = parts.headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| unfit(name)),
        _ => Err(unfit(name)),
    }
}

/// Several values come of proxies that add to what they were sent: which one is true is unknown.
fn unfit(name: &HeaderName) -> Problem {
    let name = if *name == X_FORWARDED_PROTO { "X-Forwarded-Proto" } else { "X-Forwarded-Host" };
    Problem::new(
        Code::BadRequest,
        format!("{name} must have exactly one value; let the proxy in front of Rowgate overwrite the header"),
    )
}

/// The request's address with `$after` replaced by `token`. All other options stay as they were written.
/// The result needs no escaping in a JSON string.
#[must_use]
pub fn next_link(origin: &str, path: &str, query: Option<&str>, token: &str) -> String {
    let mut link = format!("{origin}{}?", utf8_percent_encode(path, NOT_IN_URL));
    for option in query_string::without_cursor(query.unwrap_or_default()) {
        link.extend(utf8_percent_encode(option, NOT_IN_URL));
        link.push('&');
    }
    link.push_str("$after=");
    link.extend(percent::encode(token));
    link
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(headers: &[(HeaderName, &str)]) -> Result<String, Problem> {
        let mut request = axum::http::Request::builder().uri("/auth/shop/api/orders");
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        origin(&request.body(()).expect("a request").into_parts().0)
    }

    fn host(hosts: &[&str]) -> Result<String, Problem> {
        let headers: Vec<_> = hosts.iter().map(|host| (HOST, *host)).collect();
        told(&headers)
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
    fn a_proxy_says_scheme_and_host_or_one_of_them() {
        let (host, proto, forwarded) =
            ((HOST, "inner:8080"), |proto| (X_FORWARDED_PROTO, proto), |host| (X_FORWARDED_HOST, host));
        for (headers, link) in [
            (&[host.clone(), proto("https")][..], "https://inner:8080"),
            (&[host.clone(), forwarded("shop.example")], "http://shop.example"),
            (&[host.clone(), proto("HTTPS"), forwarded("shop.example:444")], "https://shop.example:444"),
            (&[proto("http"), forwarded("shop.example")], "http://shop.example"),
        ] {
            assert_eq!(told(headers).expect("good"), link, "{headers:?}");
        }
        for wrong in ["", "https, http", "ftp", "https:", "javascript"] {
            assert!(told(&[host.clone(), proto(wrong)]).is_err(), "{wrong}");
        }
        for wrong in ["", "a, b", "a/b", "a\"b", "user@a", "a b"] {
            assert!(told(&[host.clone(), forwarded(wrong)]).is_err(), "{wrong}");
        }
        assert!(told(&[host.clone(), proto("https"), proto("https")]).is_err());
        assert!(told(&[host, forwarded("a"), forwarded("a")]).is_err());
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
