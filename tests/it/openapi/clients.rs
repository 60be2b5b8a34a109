//! Clients that are generated from the shop's document read, page, write and call, in TypeScript and in Python.

use serde_json::json;

use super::fixture::{Fixture, node, python};

#[tokio::test]
async fn a_client_of_openapi_python_client_works_on_the_shop() {
    let fixture = Fixture::open().await;
    let work = tempfile::tempdir().expect("a temporary folder");
    let found = python(
        "python_client.py",
        &json!({
            "document": fixture.document("shop", "shop-admin").await,
            "work": work.path(),
            "address": fixture.world.url(),
            "key": fixture.world.key("shop-admin"),
        }),
    );
    assert_eq!(found["titles"], 3, "{found}");
}

#[tokio::test]
async fn a_client_of_openapi_typescript_works_on_the_shop() {
    let fixture = Fixture::open().await;
    let work = tempfile::tempdir().expect("a temporary folder");
    let document = fixture.document("shop", "shop-admin").await.to_string();
    let (address, key) = (fixture.world.url(), fixture.world.key("shop-admin"));
    let found = node("openapi/typescript.mjs", work.path(), &[&address, &key], &document);
    assert_eq!(found["titles"], 3, "{found}");
}
