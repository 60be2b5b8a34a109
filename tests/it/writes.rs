//! Rows made and deleted over HTTP, under the key's own grants and policies.

mod addresses;
pub(crate) mod fixtures;
mod hidden;
pub(crate) mod interrupted;
mod long;
mod protection;
pub(crate) mod refusals;
mod rows;
mod upserts;
mod values;
pub(crate) mod versioned;
pub(crate) mod views;

use rowgate_tests::client::{Client, Reply};

/// A request with a body of JSON, method and address given, and further headers.
async fn send(
    client: &Client,
    key: &str,
    (method, url): (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let own = [("X-API-Key", key), ("Content-Type", "application/json")];
    let headers: Vec<_> = own.into_iter().chain(headers.iter().copied()).collect();
    client.send(method, url, &headers, body).await
}
