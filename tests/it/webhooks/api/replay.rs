//! Where a replay begins, what it counts, and what it forgets.

use serde_json::{Value, json};

use crate::webhooks::fixture::{Mill, id};

const URL: &str = "http://127.0.0.1:9/hooks";

async fn replayed(mill: &Mill, id: &str, body: Value) -> Value {
    mill.told("one", "POST", &format!("/{id}/replay"), body, 202).await
}

#[tokio::test]
async fn a_replay_goes_back_and_never_forward() {
    let mill = Mill::open().await;
    mill.sql("insert into mill.orders values (1), (2), (3)").await;
    let made = mill.subscribed("one", URL).await;
    let id = id(&made);
    assert_eq!(made["lagEvents"], 0, "{made}");
    mill.sql("insert into mill.orders values (4); insert into mill.bags values (1)").await;

    let dry = replayed(&mill, &id, json!({"fromRetentionStart": true, "dryRun": true})).await;
    assert_eq!((&dry["events"], &dry["dryRun"]), (&json!(4), &json!(true)), "{dry}");
    let read = mill.told("one", "GET", &format!("/{id}"), Value::Null, 200).await;
    assert_eq!((&read["cursor"], &read["lagEvents"]), (&made["cursor"], &json!(1)), "{read}");
    // a dry run leaves no lock behind
    mill.sql("set lock_timeout = '10s'; select from dl.subscriptions for update").await;

    let future = replayed(&mill, &id, json!({"fromUtc": "2999-01-01T00:00:00Z"})).await;
    assert_eq!((&future["from"], &future["events"]), (&made["cursor"], &json!(1)), "{future}");
    let whole = replayed(&mill, &id, json!({"fromUtc": "2000-01-01T00:00:00+02:00"})).await;
    assert_eq!(whole["events"], 4, "{whole}");
    let read = mill.told("one", "GET", &format!("/{id}"), Value::Null, 200).await;
    assert_eq!((&read["cursor"], &read["lagEvents"]), (&whole["from"], &json!(4)), "{read}");
}

#[tokio::test]
async fn a_replay_from_an_event_begins_with_it_and_forgets_failures() {
    let mill = Mill::open().await;
    mill.sql("insert into mill.orders values (1), (2), (3)").await;
    let id = id(&mill.subscribed("one", URL).await);
    let events = format!("{}/api/ddl/events?tables=orders&after=start", mill.world.url());
    let key = mill.world.key("one");
    let page = rowgate_tests::client::Client::new().get(&events, &[("X-API-Key", &key)]).await.json();
    let second = page["events"][1]["EventId"].as_str().expect("an EventId").to_owned();
    mill.sql(
        "update dl.subscriptions set state = 'disabled', reason = 'DeadLetters', consecutive_dead_letters = 3, batch_id = 'b', attempts = 2, lease = 'x'",
    )
    .await;
    let told = replayed(&mill, &id, json!({"fromEventId": second})).await;
    assert_eq!(told["events"], 2, "{told}");
    let read = mill.told("one", "GET", &format!("/{id}"), Value::Null, 200).await;
    assert_eq!((&read["state"], &read["reason"]), (&json!("enabled"), &Value::Null), "{read}");
    assert_eq!((&read["consecutiveDeadLetters"], &read["suspend"]), (&json!(0), &json!(true)), "{read}");

    for (from, code) in [
        ("1.999.1", "InvalidCursor"),
        ("9.1.1", "InvalidCursor"),
        ("0.1.1", "InvalidCursor"),
        ("x", "InvalidCursor"),
        ("start", "InvalidCursor"),
    ] {
        let told =
            mill.told("one", "POST", &format!("/{id}/replay"), json!({"fromEventId": from}), 400).await;
        assert_eq!(told["error"]["code"], code, "{from}: {told}");
    }
}

#[tokio::test]
async fn a_replay_begins_at_exactly_one_place() {
    let mill = Mill::open().await;
    let id = id(&mill.subscribed("one", URL).await);
    for body in [
        json!({}),
        json!({"dryRun": true}),
        json!({"fromRetentionStart": false}),
        json!({"fromRetentionStart": true, "fromUtc": "2026-01-01T00:00:00Z"}),
        json!({"fromEventId": "1.1.1", "fromUtc": "2026-01-01T00:00:00Z"}),
    ] {
        let told = mill.told("one", "POST", &format!("/{id}/replay"), body.clone(), 400).await;
        assert_eq!(
            told["error"]["message"],
            "a replay begins at exactly one place; send one of \"fromRetentionStart\": true, fromEventId and fromUtc",
            "{body}"
        );
    }
    let told = mill.told("one", "POST", &format!("/{id}/replay"), json!({"fromUtc": "yesterday"}), 400).await;
    assert_eq!(told["error"]["code"], "InvalidValue", "{told}");
}
