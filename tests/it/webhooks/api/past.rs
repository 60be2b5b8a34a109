//! Deliveries and dead letters, as they are read page by page, and dead letters that are to be sent again.

use serde_json::{Value, json};

use crate::webhooks::fixture::{Mill, id};

const URL: &str = "http://127.0.0.1:9/hooks";

#[tokio::test]
async fn deliveries_are_read_page_by_page_the_newest_first() {
    let mill = Mill::open().await;
    let id = id(&mill.subscribed("one", URL).await);
    mill.sql(
        "insert into dl.deliveries (subscription, batch, attempt, took_ms, n_events, n_bytes, status, error, request, response)
         select s.id, 'b', n, 7, 1, 20, 500, 'the receiver answered 500', '{\"a\": 1}', 'oh' from dl.subscriptions s, generate_series(1, 5) n",
    )
    .await;
    let page = mill.told("one", "GET", &format!("/{id}/deliveries?limit=2"), Value::Null, 200).await;
    let attempts = |page: &Value| -> Vec<i64> {
        page["deliveries"]
            .as_array()
            .expect("deliveries")
            .iter()
            .filter_map(|it| it["attempt"].as_i64())
            .collect()
    };
    assert_eq!((attempts(&page), &page["hasMore"]), (vec![5, 4], &json!(true)), "{page}");
    assert_eq!(
        (&page["deliveries"][0]["request"], &page["deliveries"][0]["response"]),
        (&json!("{\"a\": 1}"), &json!("oh"))
    );
    let before = page["deliveries"][1]["id"].as_str().expect("an id");
    let page = mill.told("one", "GET", &format!("/{id}/deliveries?before={before}"), Value::Null, 200).await;
    assert_eq!((attempts(&page), &page["hasMore"]), (vec![3, 2, 1], &json!(false)), "{page}");
}

#[tokio::test]
async fn dead_letters_say_which_changes_they_hold_and_are_sent_again_when_they_are_asked_for() {
    let mill = Mill::open().await;
    let id = id(&mill.subscribed("one", URL).await);
    mill.sql(
        "insert into dl.dead_letters (id, subscription, n_events, attempts, first_event, last_event, changes, last_status, last_error)
         select 'd' || n, s.id, 1, 10, '1.1.1', '1.1.1', json_build_array(json_build_object('tick', 1, 'seq', 1, 'generation', 1,
             'at', '2026-11-25T00:00:00Z', 'rel', 'mill.orders'::regclass::oid::bigint, 'op', 'i', 'cause', null,
             'image', json_build_object('id', 1, 'note', 'hidden'))), 500, 'the receiver answered 500'
         from dl.subscriptions s, generate_series(1, 3) n;
         update dl.dead_letters set delivered_at = now() where id = 'd1'",
    )
    .await;
    let listed = mill.told("one", "GET", &format!("/{id}/dead-letters?limit=2"), Value::Null, 200).await;
    assert_eq!(
        (&listed["deadLetters"][0]["id"], &listed["deadLetters"][1]["id"]),
        (&json!("d3"), &json!("d2")),
        "{listed}"
    );
    assert_eq!(listed["hasMore"], true, "{listed}");
    let one = mill.told("one", "GET", &format!("/{id}/dead-letters/d2"), Value::Null, 200).await;
    let change =
        json!({"EventId": "1.1.1", "op": "insert", "occurredAt": "2026-11-25T00:00:00Z", "entity": "orders"});
    assert_eq!(one["changes"], json!([change]), "{one}");
    assert!(!one.to_string().contains("hidden"), "{one}");
    assert_eq!(mill.told("one", "GET", &format!("/{id}"), Value::Null, 200).await["deadLetters"], 2);

    let told = mill.told("one", "POST", &format!("/{id}/dead-letters/d2/redrive"), Value::Null, 202).await;
    assert_eq!(told, json!({"deadLetters": 1}));
    let one = mill.told("one", "GET", &format!("/{id}/dead-letters/d2"), Value::Null, 200).await;
    assert!(one["redriveRequestedAt"].is_string(), "{one}");
    let told = mill.told("one", "POST", &format!("/{id}/dead-letters/redrive"), Value::Null, 202).await;
    assert_eq!(told, json!({"deadLetters": 1}), "what is asked for already is not counted again");
    let told = mill.told("one", "POST", &format!("/{id}/dead-letters/d1/redrive"), Value::Null, 400).await;
    assert_eq!(
        told["error"]["message"],
        "this dead letter was delivered; to send its events once more, replay from its first event"
    );
}
