//! Mutations: the writes and calls of REST, one after another.

use serde_json::{Value, json};

use super::fixture::Shop;

#[tokio::test]
async fn rows_are_made_changed_and_deleted() {
    let shop = Shop::open().await;
    let made = shop
        .data(
            "shop-admin",
            "mutation {
                one: createCustomers(item: {name: \"Graph\", email: \"graph@example.com\", region: \"south\", signedUpOn: \"2026-01-31\"}) {
                    __typename id name rating orders { totalCount }
                }
                many: createManyCustomers(items: [
                    {name: \"A\", email: \"a@example.com\", region: \"south\", signedUpOn: \"2026-02-01\", newsletter: true, rating: 1.5},
                    {name: \"B\", email: \"b@example.com\", region: \"north\", signedUpOn: \"2026-02-01\"}
                ]) { name newsletter }
            }",
        )
        .await;
    let id = made["one"]["id"].as_i64().expect("a key");
    assert_eq!(
        made["one"],
        json!({"__typename": "Customers", "id": id, "name": "Graph", "rating": null, "orders": {"totalCount": 0}})
    );
    assert_eq!(made["many"], json!([{"name": "A", "newsletter": true}, {"name": "B", "newsletter": false}]));

    let query = "mutation($id: Long!, $item: UpdateCustomersInput!) { updateCustomers(id: $id, item: $item) { name notes } }";
    let variables = json!({"id": id, "item": {"name": "Changed", "notes": "\"quoted\" \u{1F600}"}});
    let changed = shop.ask("shop-admin", json!({"query": query, "variables": variables})).await;
    assert_eq!(
        changed["data"]["updateCustomers"],
        json!({"name": "Changed", "notes": "\"quoted\" \u{1F600}"})
    );

    let read = format!("{{ customers_by_pk(id: {id}) {{ name region }} }}");
    assert_eq!(
        shop.data("shop-admin", &read).await["customers_by_pk"],
        json!({"name": "Changed", "region": "south"})
    );
    let deleted = format!("mutation {{ deleteCustomers(id: {id}) {{ id }} __typename }}");
    assert_eq!(
        shop.data("shop-admin", &deleted).await,
        json!({"deleteCustomers": {"id": id}, "__typename": "Mutation"})
    );
    assert_eq!(shop.data("shop-admin", &read).await["customers_by_pk"], Value::Null);
}

/// What was written stays, and the failure has its place.
#[tokio::test]
async fn a_failed_field_leaves_the_others_as_they_are() {
    let shop = Shop::open().await;
    let item = |email: &str| {
        format!("{{name: \"P\", email: \"{email}\", region: \"south\", signedUpOn: \"2026-01-31\"}}")
    };
    let query = format!(
        "mutation {{
            first: createCustomers(item: {}) {{ name }}
            second: createCustomers(item: {}) {{ name }}
            gone: updateCustomers(id: 99999999, item: {{name: \"x\"}}) {{ name }}
            third: createCustomers(item: {}) {{ name }}
        }}",
        item("p1@example.com"),
        item("p1@example.com"),
        item("p3@example.com")
    );
    let answer = shop.ask("shop-admin", json!({"query": query})).await;
    assert_eq!(
        answer["data"],
        json!({"first": {"name": "P"}, "second": null, "gone": null, "third": {"name": "P"}}),
        "{answer}"
    );
    let errors = answer["errors"].as_array().expect("errors");
    let of = |error: &Value| (error["path"].clone(), error["extensions"]["code"].clone());
    assert_eq!(
        errors.iter().map(of).collect::<Vec<_>>(),
        [(json!(["second"]), json!("UniqueViolation")), (json!(["gone"]), json!("RowNotFound"))],
        "{answer}"
    );
    let there =
        "{ customers(filter: {email: {in: [\"p1@example.com\", \"p3@example.com\"]}}) { totalCount } }";
    assert_eq!(shop.data("shop-admin", there).await["customers"]["totalCount"], 2);
}

#[tokio::test]
async fn procedures_are_called_by_either_name() {
    let shop = Shop::open().await;
    let called = shop
        .data(
            "shop-admin",
            "mutation { best_sellers { __typename title } again: executeBest_sellers { title } }",
        )
        .await;
    let rows = called["best_sellers"].as_array().expect("rows");
    assert!(
        !rows.is_empty()
            && rows.iter().all(|row| row["__typename"] == "Best_sellers" && row["title"].is_string()),
        "{called}"
    );
    assert_eq!(called["again"].as_array().map(Vec::len), Some(rows.len()));
}

/// A key that reads has no mutation of rows, and none is done over GET.
#[tokio::test]
async fn a_write_needs_its_right_and_a_post() {
    let shop = Shop::open().await;
    let query = "mutation { updateCustomers(id: 1, item: {name: \"x\"}) { id } }";
    let (code, _) = shop.error("north", query).await;
    assert_eq!(code, "BadRequest");
    let key = shop.world.key("shop-admin");
    let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let reply = shop.client.get(&format!("{}?query={encoded}", shop.url()), &[("X-API-Key", &key)]).await;
    assert_eq!(reply.status, 405, "{reply:?}");
    assert!(reply.headers["allow"].to_str().is_ok_and(|allow| allow.contains("POST")), "{reply:?}");
    let name = shop.data("shop-admin", "{ customers_by_pk(id: 1) { name } }").await;
    assert_ne!(name["customers_by_pk"]["name"], "x");
}

/// The table asks for the version of the row, which is a field of the item; its rows are never deleted.
#[tokio::test]
async fn a_protected_table_takes_the_version_that_was_read() {
    let shop = Shop::open().await;
    let read =
        "{ stock(first: 1, orderBy: {product_id: ASC}) { items { product_id quantity dl_expected_ts } } }";
    let row = shop.data("shop-admin", read).await["stock"]["items"][0].clone();
    let id = &row["product_id"];
    let update = |item: &str| {
        format!("mutation {{ updateStock(product_id: {id}, item: {item}) {{ quantity dl_expected_ts }} }}")
    };
    let code = async |item: &str| shop.error("shop-admin", &update(item)).await.0;
    assert_eq!(code("{quantity: 1}").await, "ExpectedTsRequired");
    assert_eq!(code("{quantity: 1, dl_expected_ts: \"2020-01-01T00:00:00Z\"}").await, "StaleRow");
    let version = row["dl_expected_ts"].as_str().expect("a version");
    let changed =
        shop.data("shop-admin", &update(&format!("{{quantity: 77, dl_expected_ts: \"{version}\"}}"))).await;
    assert_eq!(changed["updateStock"]["quantity"], 77);
    assert_ne!(changed["updateStock"]["dl_expected_ts"], row["dl_expected_ts"]);
    assert_eq!(code(&format!("{{quantity: 78, dl_expected_ts: \"{version}\"}}")).await, "StaleRow");
    let names =
        shop.data("shop-admin", "{ __type(name: \"Mutation\") { fields { name } } }").await.to_string();
    assert!(
        names.contains("updateStock") && names.contains("deleteOrders") && !names.contains("deleteStock"),
        "{names}"
    );
}
