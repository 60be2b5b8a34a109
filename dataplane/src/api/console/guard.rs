//! Who may ask the console: its own page, in a browser on this machine.
//!
//! Every page in the world can send requests to a port of the machine on which it is read. Such a request is known by what
//! the browser, and no script, writes into its headers: `Host` is another name where a name of the attacker leads to this
//! machine (DNS rebinding), `Origin` is the page's own, and `Sec-Fetch-Site` says how far that is from here. A WebSocket is
//! opened with the same headers, and no preflight asks for it. One sentence answers all of them.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::header::{HOST, ORIGIN, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method};
use rowgate_core::problem::{Code, Problem};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The page and its files, which hold nothing of a tenant.
    Page,
    /// What is answered with a key, and the list of keys.
    Data,
}

/// Refuses what the page, loaded from `port` of this machine, does not send.
pub(super) fn check(port: u16, part: Part, parts: &Parts) -> Result<(), Problem> {
    is_of_the_page(port, part, parts).then_some(()).ok_or_else(|| {
        Problem::new(
            Code::Forbidden,
            "the console answers its own page only; open it in a browser on this machine, by the address that standalone prints",
        )
    })
}

fn is_of_the_page(port: u16, part: Part, parts: &Parts) -> bool {
    let headers = &parts.headers;
    let (Ok(Some(host)), Ok(origin), Ok(site)) =
        (single(headers, &HOST), single(headers, &ORIGIN), single(headers, &SEC_FETCH_SITE))
    else {
        return false;
    };
    // a request to a proxy names a host of its own in its first line
    if parts.uri.authority().is_some() || !is_this_machine(host, port) {
        return false;
    }
    let has_own_origin = match origin {
        Some(origin) if origin.strip_prefix("http://") == Some(host) => true,
        Some(_) => return false,
        None => false,
    };
    let is_same_origin = match site {
        Some("same-origin") => true,
        // typed, or a bookmark
        Some("none") if part == Part::Page => false,
        Some(_) => return false,
        None => false,
    };
    let is_read = parts.method == Method::GET && !headers.contains_key(UPGRADE);
    match (part, is_read) {
        // the first request of all, which no page sends
        (Part::Page, true) => true,
        // browsers send no Origin with a page's own GET
        (Part::Data, true) => has_own_origin || is_same_origin,
        (_, false) => has_own_origin,
    }
}

/// The value of a header that may stand there once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

/// Whether `host` names this machine in a way that no name server decides, with this port.
fn is_this_machine(host: &str, port: u16) -> bool {
    let (name, given) = match host.rsplit_once(':') {
        Some((name, digits)) if digits.bytes().all(|it| it.is_ascii_digit()) => (name, digits.parse().ok()),
        _ => (host, Some(80)),
    };
    let in_brackets = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let is_loopback = match in_brackets {
        Some(name) => name.parse().is_ok_and(|address: Ipv6Addr| address.is_loopback()),
        None => name == "localhost" || name.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback()),
    };
    is_loopback && given == Some(port)
}

#[cfg(test)]
mod tests;
