//! The schema of every kind of tenant, as graphql-js reads it: columns of every type, names that GraphQL cannot spell, scopes of chance.
//! `random` does the same for its own tenants.

use rowgate_tests::client::Client;
use serde_json::{Value, json};

use crate::openapi::fixture::{Fixture, KEYS, node};
use crate::reads::differential::drawn_tenants;

pub(super) const INTROSPECTION: &str = include_str!("../../clients/graphql/introspection.graphql");

#[tokio::test]
async fn graphql_js_accepts_the_schema_of_every_key() {
    let mut schemas = Vec::new();
    let ask = async |url: &str, tenant: &str, key: &str| {
        let headers = [("X-API-Key", key), ("Content-Type", "application/json")];
        let body = json!({"query": INTROSPECTION}).to_string();
        let reply =
            Client::new().send("POST", &format!("{url}/auth/{tenant}/graphql"), &headers, &body).await;
        assert_eq!(reply.status, 200, "{tenant}: {reply:?}");
        reply.json()["data"].take()
    };
    let fixture = Fixture::open().await;
    for (tenant, key) in KEYS {
        let schema = ask(&fixture.world.url(), tenant, &fixture.world.key(key)).await;
        schemas.push(json!({"name": key, "schema": schema}));
    }
    let (world, tenants) = drawn_tenants(&[0, 1]).await;
    for (slug, secrets) in tenants {
        for (i, key) in secrets.iter().enumerate() {
            let schema = ask(&world.url(), &slug, key).await;
            schemas.push(json!({"name": format!("{slug}, key {i}"), "schema": schema}));
        }
    }
    assert_eq!(schemas.len(), KEYS.len() + 20);
    let work = tempfile::tempdir().expect("a temporary folder");
    let judged = node("graphql/schemas.mjs", work.path(), &[], &Value::Array(schemas).to_string());
    assert_eq!(judged["problems"], json!([]), "{judged:#}");
}
