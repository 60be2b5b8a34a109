//! GraphQL subscriptions: the events of an entity, over each transport.

use rowgate_tests::client::sse::{Block, EventStream};
use serde_json::{Value, json};

use super::fixture::Bank;

const INSERT: &str = "insert into bank.accounts values";

impl Bank {
    /// As the protocol graphql-sse sends an operation.
    async fn subscribe(&self, key: &str, body: &Value) -> EventStream {
        let (url, key) = (format!("{}/auth/bank/graphql", self.world.url()), self.world.key(key));
        let headers = [
            ("X-API-Key", key.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "text/event-stream"),
        ];
        EventStream::new(self.client.open("POST", &url, &headers, &body.to_string()).await)
    }
}

fn next(block: Option<Block>) -> Value {
    let block = block.expect("the subscription goes on");
    assert_eq!(block.event, "next", "{block:?}");
    serde_json::from_str(&block.data).expect("an answer is JSON")
}

#[tokio::test]
async fn a_subscription_gives_the_fields_that_are_selected_of_each_event() {
    let bank = Bank::open().await;
    let query =
        "subscription($ops: [Op!]) { it: accounts(ops: $ops) { EventId cursor op key data __typename } }";
    let mut stream =
        bank.subscribe("north", &json!({"query": query, "variables": {"ops": ["insert", "delete"]}})).await;
    bank.sql(&format!("{INSERT} (1, 'south', 1, null), (2, 'north', 5, 'secret')")).await;
    let first = next(stream.next().await);
    let id = first["data"]["it"]["EventId"].clone();
    let row = json!({"id": 2, "region": "north", "balance": 5});
    let event = json!({"EventId": id, "cursor": id, "op": "insert", "key": {"id": 2}, "data": row, "__typename": "RowEvent"});
    assert_eq!(first, json!({"data": {"it": event}}));
    bank.sql("update bank.accounts set balance = 7; delete from bank.accounts").await;
    let gone = next(stream.next().await);
    assert_eq!(
        (&gone["data"]["it"]["op"], &gone["data"]["it"]["data"]["balance"]),
        (&json!("delete"), &json!(7))
    );

    // another one goes on behind the cursor
    let query = "subscription($after: String) { accounts(after: $after, ops: delete) { op entity type } }";
    let mut stream = bank.subscribe("north", &json!({"query": query, "variables": {"after": id}})).await;
    let event = json!({"op": "delete", "entity": "accounts", "type": "accounts.delete"});
    assert_eq!(next(stream.next().await), json!({"data": {"accounts": event}}));
}

#[tokio::test]
async fn a_subscription_that_cannot_begin_is_answered_once() {
    let bank = Bank::open().await;
    for (key, query, code, part) in [
        ("all", "subscription { quiet { op } }", "BadRequest", "quiet"),
        ("north", "subscription { moves { op } }", "BadRequest", "moves"),
        ("all", "subscription { accounts { op } moves { op } }", "BadRequest", "one field"),
        ("all", "subscription { accounts(after: \"x\") { op } }", "InvalidCursor", "EventId"),
        ("all", "subscription { accounts(after: \"9.1.0\") { op } }", "InvalidCursor", "read the rows again"),
    ] {
        let mut stream = bank.subscribe(key, &json!({ "query": query })).await;
        let error = &next(stream.next().await)["errors"][0];
        assert_eq!(error["extensions"]["code"], code, "{query}: {error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(part)), "{query}: {error}");
        assert_eq!(stream.next().await.map(|block| block.event).as_deref(), Some("complete"));
        assert_eq!(stream.next().await, None);
    }
    // a query is answered once, too
    let mut stream = bank.subscribe("all", &json!({"query": "{ accounts { items { id } } }"})).await;
    assert_eq!(next(stream.next().await), json!({"data": {"accounts": {"items": []}}}));
    assert_eq!(stream.next().await.map(|block| block.event).as_deref(), Some("complete"));
    // without a transport that can carry it
    let (url, key) = (format!("{}/auth/bank/graphql", bank.world.url()), bank.world.key("all"));
    let body = json!({"query": "subscription { accounts { op } }"}).to_string();
    let reply = bank
        .client
        .send("POST", &url, &[("X-API-Key", &key), ("Content-Type", "application/json")], &body)
        .await;
    let message = reply.json()["errors"][0]["message"].to_string();
    assert!(reply.status == 200 && message.contains("text/event-stream"), "{reply:?}");
}

#[tokio::test]
async fn a_subscription_ends_with_the_key() {
    let bank = Bank::open().await;
    let mut stream = bank.subscribe("north", &json!({"query": "subscription { accounts { op } }"})).await;
    bank.world.edit(
        "bank.yaml",
        "  tenantRef: {name: bank}\n",
        "  tenantRef: {name: bank}\n  revoked: true\n",
    );
    assert_eq!(next(stream.next().await)["errors"][0]["extensions"]["code"], "Unauthorized");
    assert_eq!(stream.next().await.map(|block| block.event).as_deref(), Some("complete"));
    assert_eq!(stream.next().await, None);
}
