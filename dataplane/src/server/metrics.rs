//! What is counted of requests, per tenant: atomics that a request adds to, without a lock and without memory of its own.
//!
//! A tenant's meter lives in its [`Tenant`](crate::tenants::tenant::Tenant) and goes with it, so that no label outlives what it
//! names. Labels come from fixed lists and from slugs of tenants that exist: nothing that a caller sent is among them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use rowgate_core::problem::Code;

use crate::api::routes::routes;

pub mod exposition;

pub use rowgate_program::metrics::{Count, Histogram};

/// The label of what has no name of ours: no route, or no tenant. No slug is like it.
pub const NONE: &str = "-";

/// A method or status beyond the lists.
const OTHER: &str = "other";
const METHODS: [&str; 10] =
    ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", OTHER];
const STATUSES: [&str; 30] = [
    "101", "200", "201", "202", "204", "206", "304", "400", "401", "403", "404", "405", "406", "409", "410",
    "412", "413", "414", "415", "416", "422", "428", "429", "431", "499", "500", "501", "503", "504", OTHER,
];

/// The meter of one tenant, or of the requests that belong to none.
#[derive(Default)]
pub struct RequestMetrics {
    /// In the order of [`routes`], and last what matched none. Made when a route is first asked for.
    routes: Routes,
    /// In the order of [`Code::ALL`].
    refusals: Refusals,
    /// Responses that were cut short, and requests whose clients disconnected first.
    pub cut: Count,
    pub exchanges: Histogram,
    pub catalog_loads: Count,
    pub catalog_load_failures: Count,
    pub look_ups_of_known_keys: Count,
    pub look_ups_of_unknown_keys: Count,
}

struct Refusals([AtomicU64; Code::ALL.len()]);

struct Routes(Box<[OnceLock<Box<RouteMetrics>>]>);

#[derive(Default)]
struct RouteMetrics {
    requests: [[AtomicU64; STATUSES.len()]; METHODS.len()],
    durations: Histogram,
}

/// A request as it is counted.
pub struct RequestSample<'a> {
    /// A pattern of [`routes`]; `None`: it matched none.
    pub route: Option<&'a str>,
    pub method: &'a Method,
    pub status: StatusCode,
    /// Why it was refused, if it was.
    pub refused: Option<Code>,
    pub took: Duration,
    pub is_whole: bool,
}

/// What was no request: the connection refused it, and no handler saw it.
#[derive(Default)]
pub struct UnparsedRequests {
    pub malformed: Count,
    pub too_large: Count,
}

impl Default for Refusals {
    fn default() -> Refusals {
        Refusals(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Default for Routes {
    fn default() -> Routes {
        Routes((0..=routes().len()).map(|_| OnceLock::new()).collect())
    }
}

impl RequestMetrics {
    pub fn count(&self, request: &RequestSample<'_>) {
        let position = |pattern| routes().iter().position(|route| route.path == pattern);
        let route = request.route.and_then(position).unwrap_or(routes().len());
        let metrics = self.routes.0[route].get_or_init(Box::default);
        let status = request.status;
        let status = place(&STATUSES, status.as_str());
        metrics.requests[place(&METHODS, request.method.as_str())][status].fetch_add(1, Ordering::Relaxed);
        metrics.durations.observe(request.took);
        if !request.is_whole {
            self.cut.add_one();
        }
        if let Some(code) = request.refused {
            self.refusals.0[code as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Route, method, status and how many: all that were ever asked for.
    fn each_request(&self, mut tell: impl FnMut(&'static str, &'static str, &'static str, u64)) {
        self.each_route(|route, metrics| {
            for (method, by_status) in METHODS.iter().zip(&metrics.requests) {
                for (status, n) in STATUSES.iter().zip(by_status) {
                    match n.load(Ordering::Relaxed) {
                        0 => {}
                        n => tell(route, method, status, n),
                    }
                }
            }
        });
    }

    fn each_duration(&self, mut tell: impl FnMut(&'static str, &Histogram)) {
        self.each_route(|route, metrics| tell(route, &metrics.durations));
    }

    fn each_refusal(&self, mut tell: impl FnMut(Code, u64)) {
        for (code, n) in Code::ALL.into_iter().zip(&self.refusals.0) {
            match n.load(Ordering::Relaxed) {
                0 => {}
                n => tell(code, n),
            }
        }
    }

    fn each_route(&self, mut tell: impl FnMut(&'static str, &RouteMetrics)) {
        let names = routes().iter().map(|route| route.path).chain([NONE]);
        for (name, metrics) in names.zip(&self.routes.0) {
            if let Some(metrics) = metrics.get() {
                tell(name, metrics);
            }
        }
    }
}

/// The method as metrics and the log name it: the caller's word only where it is one of the list.
#[must_use]
pub fn method(method: &Method) -> &'static str {
    METHODS[place(&METHODS, method.as_str())]
}

/// Where `name` stands in `names`, the last of which is for all others.
fn place(names: &[&str], name: &str) -> usize {
    names.iter().position(|known| *known == name).unwrap_or(names.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_place_and_its_status_a_label() {
        for (i, code) in Code::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, i, "{code:?}");
            assert!(STATUSES.contains(&code.status().to_string().as_str()), "{code:?}");
        }
    }

    #[test]
    fn what_is_in_no_list_is_counted_and_not_named() {
        let metrics = RequestMetrics::default();
        let method = Method::from_bytes(b"CANARY").expect("a token");
        let status = StatusCode::from_u16(599).expect("a status");
        let refused = Some(Code::StatementTimeout);
        let took = Duration::from_millis(3);
        let is_whole = true;
        metrics.count(&RequestSample {
            route: Some("/canary"),
            method: &method,
            status,
            refused,
            took,
            is_whole,
        });
        let mut seen = Vec::new();
        metrics.each_request(|route, method, status, n| seen.push((route, method, status, n)));
        assert_eq!(seen, [(NONE, OTHER, OTHER, 1)]);
        let mut codes = Vec::new();
        metrics.each_refusal(|code, n| codes.push((code, n)));
        assert_eq!(codes, [(Code::StatementTimeout, 1)]);
    }
}
