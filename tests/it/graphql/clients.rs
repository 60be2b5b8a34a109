//! Public clients, and the audits of GraphQL over HTTP.

use std::path::Path;

use serde_json::Value;

use super::fixture::Shop;
use crate::openapi::fixture::node;

fn run(shop: &Shop, script: &str, work: &Path, input: &str) -> Value {
    node(&format!("graphql/{script}"), work, &[&shop.url(), &shop.world.key("shop-admin")], input)
}

#[tokio::test]
async fn every_audit_of_graphql_http_holds() {
    let shop = Shop::open().await;
    let work = tempfile::tempdir().expect("a temporary folder");
    let found = run(&shop, "audits.mjs", work.path(), "");
    assert_eq!(found["failed"], serde_json::json!([]), "{found}");
    assert!(50 < found["held"].as_u64().unwrap_or_default(), "{found}");
}

#[tokio::test]
async fn apollo_urql_code_generator_and_relay_work_on_the_shop() {
    let shop = Shop::open().await;
    let work = tempfile::tempdir().expect("a temporary folder");
    let schema = run(&shop, "schema.mjs", work.path(), "");
    assert_eq!(schema["problems"], serde_json::json!([]), "{schema}");
    let sdl = schema["sdl"].as_str().expect("the schema as text");
    let found = run(&shop, "clients.mjs", work.path(), sdl);
    let ids = found["apollo"].as_array().expect("keys");
    assert_eq!(ids.len(), 12, "{found}");
    assert!(ids.is_sorted_by(|a, b| b.as_i64() < a.as_i64()), "{found}");
    // the text is sent once
    assert_eq!(found["apolloRequests"], 4, "{found}");
    assert_eq!(
        (&found["made"], &found["urql"], &found["urqlError"], &found["types"], &found["relay"]),
        (&"Apollo".into(), &2.into(), &"BadRequest".into(), &true.into(), &true.into()),
        "{found}"
    );
}
