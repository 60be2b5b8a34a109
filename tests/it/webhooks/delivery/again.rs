//! What is sent once more because a caller asks: dead letters, and what a replay goes back to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowgate_tests::client::Client;
use rowgate_tests::servers::receiver::Receiver;
use serde_json::{Value, json};

use super::{is_given_back, read_until, requests, subscribed, told};
use crate::webhooks::fixture::Mill;

/// Seen to fail where a worker looks at `suspend` only when it begins.
#[tokio::test]
async fn all_dead_letters_are_sent_again_in_their_order_and_nothing_is_while_it_is_suspended() {
    let mill = Mill::open().await;
    let fails = Arc::new(AtomicBool::new(true));
    let failing = fails.clone();
    let status = move || if failing.load(Ordering::Acquire) { 500 } else { 200 };
    let (receiver, gate) = Receiver::gated(true, status).await;
    let more = json!({"retry": {"maxAttempts": 1}, "batch": {"maxEvents": 1}});
    let (id, _) = subscribed(&mill, &receiver, &more).await;
    mill.sql("insert into mill.orders select n from generate_series(1, 3) n").await;
    read_until(&mill, &id, |read| read["state"] == "disabled" && read["deadLetters"] == 3).await;
    fails.store(false, Ordering::Release);
    gate.send_replace(false);

    mill.told("one", "PATCH", &format!("/{id}"), json!({"suspend": false}), 200).await;
    let told_of = mill.told("one", "POST", &format!("/{id}/dead-letters/redrive"), Value::Null, 202).await;
    assert_eq!(told_of, json!({"deadLetters": 3}));
    requests(&receiver, 4).await;
    mill.sql("insert into mill.orders values (4)").await;
    mill.told("one", "PATCH", &format!("/{id}"), json!({"suspend": true}), 200).await;
    gate.send_replace(true);
    let read = read_until(&mill, &id, |read| read["deadLetters"] == 2).await;
    assert_eq!(read["delivering"], "Suspended", "{read}");
    is_given_back(&mill).await;
    assert_eq!(receiver.n_requests(), 4, "what waits is not sent while it is suspended");

    mill.told("one", "PATCH", &format!("/{id}"), json!({"suspend": false}), 200).await;
    let got = requests(&receiver, 7).await;
    let of = |replay: bool| -> Vec<String> {
        got[3..].iter().filter(|it| it.json()["replay"] == replay).flat_map(told).collect()
    };
    assert_eq!(
        (of(true), of(false)),
        (["insert 1", "insert 2", "insert 3"].map(str::to_owned).to_vec(), vec!["insert 4".to_owned()])
    );
    read_until(&mill, &id, |read| read["deadLetters"] == 0).await;
}

#[tokio::test]
async fn a_replay_sends_what_became_visible_from_an_event_or_a_time_on() {
    let mill = Mill::open().await;
    let receiver = Receiver::good().await;
    let (id, _) = subscribed(&mill, &receiver, &json!({"batch": {"maxEvents": 1}})).await;
    for n in 1..=4 {
        // an event each, at a time of its own
        mill.sql(&format!("insert into mill.orders values ({n})")).await;
        requests(&receiver, n).await;
    }
    read_until(&mill, &id, |read| read["lagEvents"] == 0).await;
    let key = mill.world.key("one");
    let url = format!("{}/api/ddl/events?tables=orders&after=start", mill.world.url());
    let page = Client::new().get(&url, &[("X-API-Key", &key)]).await.json();
    let event = &page["events"][1];
    let time = |n: usize| page["events"][n]["occurredAt"].clone();
    assert!(time(2).as_str() < time(3).as_str(), "{page}");

    let replayed = async |from: Value, n: u64| {
        let before = receiver.n_requests();
        let told_of = mill.told("one", "POST", &format!("/{id}/replay"), from, 202).await;
        let n_more = told_of["events"].as_u64().and_then(|n| usize::try_from(n).ok()).expect("a count");
        let got = requests(&receiver, before + n_more).await;
        read_until(&mill, &id, |read| read["lagEvents"] == 0).await;
        assert!(got[before..].iter().all(|request| request.json()["replay"] == true), "{n}");
        got[before..].iter().flat_map(told).collect::<Vec<String>>()
    };
    let from_event = replayed(json!({"fromEventId": event["EventId"]}), 3).await;
    assert_eq!(from_event, ["insert 2", "insert 3", "insert 4"], "with the event itself");
    let from_time = replayed(json!({"fromUtc": time(3)}), 1).await;
    assert_eq!(from_time.last().map(String::as_str), Some("insert 4"));
    assert!(!from_time.contains(&"insert 1".to_owned()), "{from_time:?}");
}
