//! Rows made and deleted over HTTP, under the key's own grants and policies.

mod addresses;
mod attic;
mod contended;
mod demanded;
mod details;
mod fixture;
mod gallery;
mod hidden;
mod kept;
mod long;
mod misfits;
mod outages;
mod passing;
mod place;
mod protected;
mod racing;
mod refused;
mod rows;
mod tags;
mod unwritable;
mod upserts;
mod values;
mod vault;
mod versions;
mod views;

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
