//! A request before it is sent.

use hyper::Method;
use serde_json::Value;

use super::address::{self, Target};

/// What is asked of the server. Headers other than these are the client's own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// The path with its query, both encoded, below the base; or a link that an answer named.
    pub(crate) at: At,
    pub(crate) body: Option<Value>,
    /// Sent again where the server asks for that, or where it cannot be reached.
    pub(crate) is_repeatable: bool,
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum At {
    Path(String),
    Link(Target),
}

impl Request {
    fn new(method: Method, path: String, body: Option<Value>, is_repeatable: bool) -> Request {
        Request { method, at: At::Path(path), body, is_repeatable, headers: Vec::new() }
    }

    #[must_use]
    pub(crate) fn get(path: String) -> Request {
        Request::new(Method::GET, path, None, true)
    }

    /// A link is followed as it is; who follows one decides what a failure means.
    #[must_use]
    pub(crate) fn follow(target: Target) -> Request {
        Request { at: At::Link(target), ..Request::get(String::new()) }.once()
    }

    #[must_use]
    pub(crate) fn delete(path: String) -> Request {
        Request::new(Method::DELETE, path, None, true)
    }

    /// Does something, and is sent once: a lost answer may mean that it was done.
    #[must_use]
    pub(crate) fn post(path: String, body: Option<Value>) -> Request {
        Request::new(Method::POST, path, body, false)
    }

    /// Only reads, although its method is POST.
    #[must_use]
    pub(crate) fn ask(path: String, body: Value) -> Request {
        Request::new(Method::POST, path, Some(body), true)
    }

    #[must_use]
    pub(crate) fn patch(path: String, body: Value) -> Request {
        Request::new(Method::PATCH, path, Some(body), false)
    }

    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: String) -> Request {
        self.headers.push((name, value));
        self
    }

    /// Is not sent again.
    #[must_use]
    pub(crate) fn once(mut self) -> Request {
        self.is_repeatable = false;
        self
    }

    /// With these parameters behind the path.
    #[must_use]
    pub(crate) fn query(mut self, parameters: &[(&str, String)]) -> Request {
        if let At::Path(path) = &mut self.at {
            *path = address::with_query(path, parameters);
        }
        self
    }
}
