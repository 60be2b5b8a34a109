//! A caller that keeps its connections, and what it is answered, headers included.

pub mod sse;

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

use crate::sweep;

/// Belongs to the test that made it: connections live in its runtime.
#[derive(Debug, Clone, Default)]
pub struct Client(reqwest::Client);

/// An answer, read whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Client {
    #[must_use]
    pub fn new() -> Client {
        Client::default()
    }

    /// `GET` with these headers.
    pub async fn get(&self, url: &str, headers: &[(&str, &str)]) -> Reply {
        self.ask("GET", url, headers).await
    }

    /// Any method, without a body. A header named twice is sent twice.
    pub async fn ask(&self, method: &str, url: &str, headers: &[(&str, &str)]) -> Reply {
        self.send(method, url, headers, "").await
    }

    /// As [`Client::ask`], with a body unless it is empty.
    pub async fn send(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let response = self.open(method, url, headers, body).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.text().await.unwrap_or_else(|error| panic!("{url}: {error:?}"));
        sweep::answer(url, &format!("{headers:?}"), &body);
        Reply { status, headers, body }
    }

    /// As [`Client::send`], for an answer that is read piece by piece.
    pub async fn open(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let answered = self.try_open(method, url, headers, body).await;
        answered.unwrap_or_else(|error| panic!("{url}: {error:?}"))
    }

    /// As [`Client::open`], of a server that may be away.
    ///
    /// # Errors
    /// The connection is refused or breaks.
    pub async fn try_open(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> reqwest::Result<Response> {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let request = self.0.request(method, url);
        let request = if body.is_empty() { request } else { request.body(body.to_owned()) };
        let add = |request: RequestBuilder, (name, value): &(&str, &str)| request.header(*name, *value);
        headers.iter().fold(request, add).send().await
    }
}

impl Reply {
    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The rows of a 200.
    #[must_use]
    pub fn rows(&self) -> Vec<Value> {
        assert_eq!(self.status, StatusCode::OK, "{self:?}");
        self.json()["value"].as_array().cloned().unwrap_or_else(|| panic!("no rows in {self:?}"))
    }

    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("our headers are ASCII"))
    }

    /// What a caller can tell two answers by: everything but the time. Send both requests with one `X-Request-Id`.
    #[must_use]
    pub fn tellable(&self) -> Reply {
        let mut all = self.clone();
        all.headers.remove("date");
        all
    }
}
