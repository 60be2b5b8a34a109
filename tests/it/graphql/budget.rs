//! `limits.graphqlCostPerSecond`: the rows that the operations of one key may ask for in a time.

use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::wait::until;
use serde_json::json;

use super::fixture::Shop;

const DEAR: &str = "{ orders(first: 1000) { items { id } } }";
const CHEAP: &str = "{ orders(first: 1) { items { id } } }";

/// Seen to fail without the count of what an operation costs, and where a remembered record is enough to be refused by the limit.
#[tokio::test]
async fn what_a_key_asks_for_is_made_up_for_before_more_is_given() {
    let shop = Shop::open().await;
    shop.world.edit("tenant.yaml", "  limits:\n", "  limits:\n    graphqlCostPerSecond: 100\n");
    let body = |query: &str| json!({"query": query}).to_string();
    let refused = until("a refusal by the limit", async || {
        let reply = shop.post("shop-admin", &body(DEAR), &[]).await;
        (reply.status == 429).then_some(reply)
    })
    .await;
    let answer = refused.json();
    let message = answer["error"]["message"].as_str().expect("a message").to_owned();
    assert_eq!(answer["error"]["code"], "RateLimited", "{answer}");
    assert!(message.contains("limits.graphqlCostPerSecond") && message.contains("100"), "{message}");
    let wait: u32 = refused.header("retry-after").and_then(|wait| wait.parse().ok()).expect("seconds");
    assert!((2..=11).contains(&wait), "{wait}");
    // what is cheap waits as well, and what writes writes nothing
    assert_eq!(shop.post("shop-admin", &body(CHEAP), &[]).await.status, 429);
    let write = r#"mutation { updateCustomers(id: 1, item: {name: "changed"}) { id } }"#;
    assert_eq!(shop.post("shop-admin", &body(write), &[]).await.status, 429);
    let mut superuser = shop.world.superuser("shop").await;
    let changed = rows(&mut superuser, "select from shop.customers where name = 'changed'").await;
    assert!(changed.is_empty(), "{changed:?}");

    // another key has its own, and what is no GraphQL has nothing to do with it
    shop.data("north", CHEAP).await;
    let key = shop.world.key("shop-admin");
    let page = shop.client.get(&shop.world.shop_url("/orders?$first=1"), &[("X-API-Key", &key)]).await;
    assert_eq!(page.status, 200, "{page:?}");

    // what overdraws the limit is answered, however often it has to ask the database
    let long = "insert into shop.orders (customer_id, region, placed_at, state)
        select c.id, 'north', now(), 'new' from shop.customers c, generate_series(1, 200)";
    execute(&mut superuser, long).await;
    let lists = shop.data("north", "{ customers(first: 2) { items { orders { items { id } } } } }").await;
    for customer in lists["customers"]["items"].as_array().expect("customers") {
        assert_eq!(customer["orders"]["items"].as_array().map(Vec::len), Some(100), "{lists}");
    }
    assert_eq!(shop.post("north", &body(CHEAP), &[]).await.status, 429);

    // only a live key learns of it
    execute(&mut superuser, "update dl.keys set revoked_at = now() where name = 'shop-admin'").await;
    assert_eq!(shop.post("shop-admin", &body(CHEAP), &[]).await.status, 401);
    execute(&mut superuser, "update dl.keys set revoked_at = null where name = 'shop-admin'").await;

    until("the time that makes up for it", async || {
        let reply = shop.post("shop-admin", &body(CHEAP), &[]).await;
        (reply.status == 200).then_some(())
    })
    .await;
}
