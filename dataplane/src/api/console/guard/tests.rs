//! Requests as browsers and others write them, and whether the console answers them.

use axum::http::Request;

use super::*;

/// `METHOD part`, with these headers after a good `Host` unless there is another one.
fn passes(method: &str, part: Part, headers: &[(&str, &str)]) -> bool {
    let mut request = Request::builder().method(method).uri("/");
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "127.0.0.1:8080");
    }
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let (parts, ()) = request.body(()).expect("a request").into_parts();
    check(8080, part, &parts).is_ok()
}

const OWN: (&str, &str) = ("origin", "http://127.0.0.1:8080");
const SAME: (&str, &str) = ("sec-fetch-site", "same-origin");

#[test]
fn the_page_is_answered() {
    assert!(passes("GET", Part::Page, &[]));
    assert!(passes("GET", Part::Page, &[("sec-fetch-site", "none")]));
    assert!(passes("GET", Part::Page, &[SAME]));
    assert!(passes("GET", Part::Page, &[OWN, SAME]));
    assert!(passes("GET", Part::Data, &[SAME]));
    assert!(passes("GET", Part::Data, &[OWN]));
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"] {
        assert!(passes(method, Part::Data, &[OWN, SAME]), "{method}");
        assert!(passes(method, Part::Data, &[OWN]), "{method}");
    }
    assert!(passes("GET", Part::Data, &[OWN, ("upgrade", "websocket")]));
}

#[test]
fn a_host_is_a_name_of_this_machine_with_the_port() {
    for host in ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", "127.9.9.9:8080"] {
        assert!(passes("GET", Part::Page, &[("host", host)]), "{host}");
    }
    for host in [
        "",
        "127.0.0.1",
        "127.0.0.1:8081",
        "127.0.0.1:08080x",
        "127.0.0.1:",
        "127.1:8080",
        "127.0.0.1.example.com:8080",
        "localhost.example.com:8080",
        "example.com:8080",
        "LOCALHOST:8080",
        "10.0.0.1:8080",
        "0.0.0.0:8080",
        "[::]:8080",
        "[::1]",
        "::1:8080",
        "[::ffff:10.0.0.1]:8080",
        "user@127.0.0.1:8080",
        "127.0.0.1:8080/",
    ] {
        assert!(!passes("GET", Part::Page, &[("host", host)]), "{host}");
    }
    assert!(!passes("GET", Part::Page, &[("host", "127.0.0.1:8080"), ("host", "127.0.0.1:8080")]));
    assert!(is_this_machine("localhost", 80) && is_this_machine("[::1]", 80));
    let (parts, ()) = Request::get("http://127.0.0.1:8080/")
        .header("host", "127.0.0.1:8080")
        .body(())
        .expect("a request")
        .into_parts();
    assert!(check(8080, Part::Page, &parts).is_err(), "a host in the first line");
}

#[test]
fn another_origin_is_refused_wherever_it_stands() {
    for origin in [
        "null",
        "",
        "http://127.0.0.1",
        "http://127.0.0.1:8081",
        "https://127.0.0.1:8080",
        "http://localhost:8080",
        "http://127.0.0.1:8080.example.com",
        "http://127.0.0.1:8080/",
        "http://example.com",
    ] {
        for (method, part) in [("GET", Part::Page), ("GET", Part::Data), ("POST", Part::Data)] {
            assert!(!passes(method, part, &[("origin", origin)]), "{method} {origin}");
            assert!(!passes(method, part, &[("origin", origin), SAME]), "{method} {origin}");
        }
    }
    assert!(!passes("POST", Part::Data, &[OWN, OWN]));
}

#[test]
fn a_request_without_an_origin_changes_nothing() {
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        assert!(!passes(method, Part::Data, &[]), "{method}");
        assert!(!passes(method, Part::Data, &[SAME]), "{method}");
        assert!(!passes(method, Part::Page, &[SAME]), "{method}");
    }
    assert!(!passes("GET", Part::Data, &[("upgrade", "websocket"), SAME]));
    // neither header: no page that a browser shows asks like this
    assert!(!passes("GET", Part::Data, &[]));
}

#[test]
fn another_site_is_refused() {
    for site in ["cross-site", "same-site", "", "Same-Origin", "other"] {
        assert!(!passes("GET", Part::Page, &[("sec-fetch-site", site)]), "{site}");
        assert!(!passes("GET", Part::Data, &[OWN, ("sec-fetch-site", site)]), "{site}");
        assert!(!passes("POST", Part::Data, &[OWN, ("sec-fetch-site", site)]), "{site}");
    }
    assert!(!passes("GET", Part::Data, &[("sec-fetch-site", "none")]), "typed into the address bar");
    assert!(!passes("GET", Part::Page, &[SAME, ("sec-fetch-site", "cross-site")]));
}
