//! Receivers that fail: tried again, isolated, given up, disabled, sent once more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rowgate_tests::servers::postgres::rows;
use rowgate_tests::servers::receiver::{Answer, Receiver, Request};
use rowgate_tests::wait::{until, until_ok};
use rowgate_tests::world::status::condition;
use serde_json::{Value, json};

use super::{read_until, requests, subscribed, told};
use crate::webhooks::fixture::Mill;

/// Answers one after the other, and then the last of them for ever.
async fn answering(answers: Vec<Answer>) -> Receiver {
    let n = AtomicUsize::new(0);
    Receiver::at("127.0.0.1", move |_| {
        let i = n.fetch_add(1, Ordering::AcqRel).min(answers.len() - 1);
        let answer = answers[i].clone();
        Box::pin(async move { answer })
    })
    .await
}

/// Refuses what holds `bad` while it is told to.
async fn picky(is_picky: Arc<AtomicBool>, status: u16) -> Receiver {
    Receiver::at("127.0.0.1", move |request| {
        let is_bad = is_picky.load(Ordering::Acquire) && request.body.contains("bad");
        Box::pin(async move { Answer::Status(if is_bad { status } else { 200 }) })
    })
    .await
}

/// Seen to fail where a batch that is tried again is read anew.
#[tokio::test]
async fn a_batch_is_tried_again_as_it_was_until_it_is_taken() {
    let mill = Mill::open().await;
    let busy = Answer::Full(503, "Retry-After: 1".to_owned(), "busy".to_owned());
    let moved = Answer::Full(302, "Location: /elsewhere".to_owned(), String::new());
    let receiver =
        answering(vec![Answer::Status(500), busy, moved, Answer::Close, Answer::Status(200)]).await;
    let (id, _) = subscribed(&mill, &receiver, &json!({})).await;
    mill.sql("insert into mill.orders select n from generate_series(1, 3) n").await;
    requests(&receiver, 1).await;
    mill.sql("insert into mill.orders values (4); truncate mill.bags").await;
    let got = requests(&receiver, 6).await;
    for (i, request) in got[..5].iter().enumerate() {
        assert_eq!(told(request), ["insert 1", "insert 2", "insert 3"]);
        assert_eq!(request.path, "/hooks", "a redirect is not followed");
        let message = request.json();
        assert_eq!((&message["id"], &message["attempt"]), (&got[0].json()["id"], &json!(i + 1)), "{message}");
        assert_eq!(message["replay"], false);
    }
    // in milliseconds: half a second may lie between two attempts
    let time = |request: &Request| request.json()["timestamp"].as_str().expect("a time").to_owned();
    let times: Vec<String> = got[..5].iter().map(time).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "each attempt has its own time: {times:?}");
    let signed: Vec<&String> = got[..5].iter().map(|request| &request.headers["webhook-timestamp"]).collect();
    assert!(signed.windows(2).all(|pair| pair[0] <= pair[1]), "{signed:?}");
    assert!(signed[0] < signed[4], "each attempt is signed for its own time: {signed:?}");
    assert_eq!(told(&got[5]), ["insert 4"]);
    assert_ne!(got[5].json()["id"], got[0].json()["id"]);

    let read = read_until(&mill, &id, |read| read["lagEvents"] == 0).await;
    assert_eq!((&read["state"], &read["consecutiveDeadLetters"]), (&json!("enabled"), &json!(0)), "{read}");
    let past = mill.told("one", "GET", &format!("/{id}/deliveries"), Value::Null, 200).await;
    let list = past["deliveries"].as_array().expect("a list");
    let statuses: Vec<&Value> = list.iter().rev().map(|it| &it["status"]).collect();
    assert_eq!(statuses, [&json!(500), &json!(503), &json!(302), &Value::Null, &json!(200), &json!(200)]);
    assert_eq!(list[4]["response"], "busy", "{past}");
}

/// Seen to fail where `Retry-After` is not read.
#[tokio::test]
async fn a_receiver_that_asks_for_time_has_it() {
    let mill = Mill::open().await;
    let receiver = answering(vec![
        Answer::Full(429, "Retry-After: 1800".to_owned(), String::new()),
        Answer::Full(503, "Retry-After: 864000".to_owned(), String::new()),
    ])
    .await;
    let (id, _) = subscribed(&mill, &receiver, &json!({})).await;
    mill.sql("insert into mill.orders values (1)").await;
    // the schedule of its own would wait for a second
    let wait = "select extract(epoch from next_at - last_error_at)::int as n, attempts from dl.subscriptions";
    let mut superuser = mill.world.superuser("mill").await;
    let mut waits = async |attempt: i64| {
        until(&format!("attempt {attempt}"), async || {
            let found = rows(&mut superuser, wait).await.remove(0);
            (found["attempts"] == attempt).then(|| found["n"].as_i64().expect("it waits"))
        })
        .await
    };
    assert!((1_798..=1_802).contains(&waits(1).await));
    mill.sql("update dl.subscriptions set next_at = now()").await;
    let longest = waits(2).await;
    assert!((3_598..=3_602).contains(&longest), "an hour at most: {longest}");
    let read = mill.told("one", "GET", &format!("/{id}"), Value::Null, 200).await;
    assert_eq!((&read["state"], &read["delivering"]), (&json!("enabled"), &json!("Failing")), "{read}");
    assert_eq!(receiver.n_requests(), 2);
}

/// Seen to fail where the limit of now cuts a batch of before.
#[tokio::test]
async fn a_batch_that_is_tried_again_keeps_its_bounds_when_batches_become_smaller() {
    let mill = Mill::open().await;
    let receiver = answering(vec![Answer::Status(503), Answer::Status(200)]).await;
    let (id, _) = subscribed(&mill, &receiver, &json!({})).await;
    mill.sql("insert into mill.orders select n from generate_series(1, 80) n").await;
    let first = requests(&receiver, 1).await;
    mill.told("one", "PATCH", &format!("/{id}"), json!({"batch": {"maxEvents": 5}}), 200).await;
    mill.sql("insert into mill.orders values (81)").await;
    let got = requests(&receiver, 3).await;
    assert_eq!((told(&got[0]).len(), told(&got[1])), (80, told(&first[0])));
    assert_eq!(
        (got[1].json()["id"].clone(), told(&got[2])),
        (got[0].json()["id"].clone(), vec!["insert 81".to_owned()])
    );
}

/// Seen to fail where a batch is given up whole.
#[tokio::test]
async fn a_bad_event_is_isolated_given_up_alone_and_sent_once_more_when_that_is_asked_for() {
    let mill = Mill::open().await;
    let is_picky = Arc::new(AtomicBool::new(true));
    let receiver = picky(is_picky.clone(), 422).await;
    let more = json!({"retry": {"maxAttempts": 2, "initialDelay": 1, "maxDelay": 1}});
    let (id, _) = subscribed(&mill, &receiver, &more).await;
    mill.sql("insert into mill.orders select n, case n when 5 then 'bad' else 'good' end from generate_series(1, 8) n")
        .await;
    let read = read_until(&mill, &id, |read| read["lagEvents"] == 0).await;
    assert_eq!((&read["state"], &read["deadLetters"]), (&json!("enabled"), &json!(1)), "{read}");
    assert_eq!(read["consecutiveDeadLetters"], 0, "what follows was delivered: {read}");
    let taken = receiver.requests().into_iter().filter(|request| !request.body.contains("bad"));
    let taken: Vec<String> = taken.flat_map(|request| told(&request)).collect();
    let good: Vec<String> = [1, 2, 3, 4, 6, 7, 8].iter().map(|n| format!("insert {n}")).collect();
    assert_eq!(taken, good, "in their order, each once");

    let letters = mill.told("one", "GET", &format!("/{id}/dead-letters"), Value::Null, 200).await;
    let letter = letters["deadLetters"][0].clone();
    assert_eq!((&letter["events"], &letter["attempts"]), (&json!(1), &json!(2)), "{letters}");
    is_picky.store(false, Ordering::Release);
    let n = receiver.n_requests();
    let path = format!("/{id}/dead-letters/{}/redrive", letter["id"].as_str().expect("an id"));
    mill.told("one", "POST", &path, Value::Null, 202).await;
    let got = requests(&receiver, n + 1).await;
    assert_eq!(told(&got[n]), ["insert 5"]);
    assert_eq!(got[n].json()["id"], letter["id"]);
    read_until(&mill, &id, |read| read["deadLetters"] == 0).await;
}

/// Seen to fail where nothing counts dead letters.
#[tokio::test]
async fn the_third_dead_letter_in_a_row_disables_and_a_patch_enables_where_it_was() {
    let mill = Mill::open().await;
    let is_picky = Arc::new(AtomicBool::new(true));
    let receiver = picky(is_picky.clone(), 500).await;
    let more = json!({"retry": {"maxAttempts": 1}, "batch": {"maxEvents": 1}});
    let (id, _) = subscribed(&mill, &receiver, &more).await;
    mill.sql("insert into mill.orders select n, 'bad' from generate_series(1, 5) n").await;
    let read = read_until(&mill, &id, |read| read["state"] == "disabled").await;
    assert_eq!((&read["reason"], &read["deadLetters"]), (&json!("DeadLetters"), &json!(3)), "{read}");
    assert_eq!((&read["delivering"], &read["lagEvents"]), (&json!("Disabled"), &json!(2)), "{read}");
    assert_eq!(receiver.n_requests(), 3);
    let metrics = reqwest::get(format!("{}/metrics", mill.world.probes_url())).await.expect("an answer");
    let metrics = metrics.text().await.expect("a text");
    for line in [
        "rowgate_webhook_deliveries_total{tenant=\"mill\",outcome=\"failed\"} 3",
        "rowgate_webhook_dead_letters_total{tenant=\"mill\"} 3",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line}: {metrics}");
    }
    is_picky.store(false, Ordering::Release);
    mill.told("one", "PATCH", &format!("/{id}"), json!({"suspend": false}), 200).await;
    let got = requests(&receiver, 5).await;
    assert_eq!([told(&got[3]), told(&got[4])], [["insert 4"], ["insert 5"]]);
    let read = read_until(&mill, &id, |read| read["lagEvents"] == 0).await;
    assert_eq!((&read["state"], &read["consecutiveDeadLetters"]), (&json!("enabled"), &json!(0)), "{read}");
}

#[tokio::test]
async fn a_receiver_that_is_gone_disables_where_that_is_asked_for_and_fails_elsewhere() {
    let mill = Mill::open().await;
    let receiver = answering(vec![Answer::Status(410)]).await;
    let more = json!({"retry": {"maxAttempts": 5, "initialDelay": 60, "disableOnGone": true}});
    let (gone, _) = subscribed(&mill, &receiver, &more).await;
    let more = json!({"retry": {"maxAttempts": 5, "initialDelay": 60}});
    let (fails, _) = subscribed(&mill, &receiver, &more).await;
    mill.sql("insert into mill.orders values (1)").await;
    let read = read_until(&mill, &gone, |read| read["state"] == "disabled").await;
    assert_eq!(read["reason"], "Gone", "{read}");
    let read = read_until(&mill, &fails, |read| read["delivering"] == "Failing").await;
    assert_eq!(
        (&read["state"], &read["lastError"]),
        (&json!("enabled"), &json!("the receiver answered 410")),
        "{read}"
    );
}

/// What the log gave up is kept for a subscription, for 30 days.
///
/// Seen to fail where the age of what is kept is not looked at.
#[tokio::test]
async fn what_is_undelivered_for_30_days_disables_and_is_released() {
    let mill = Mill::open().await;
    let receiver = Receiver::good().await;
    let (id, _) = subscribed(&mill, &receiver, &json!({"suspend": true})).await;
    let keep = |days: u32| {
        format!(
            "insert into dl.backlog (subscription, tick, seq, at, rel, op, image)
             select id, cursor_tick, {days}, now() - interval '{days} days', 'mill.orders'::regclass, 'i', '{{\"id\": 1}}'
             from dl.subscriptions where id = '{id}'"
        )
    };
    mill.sql(&keep(29)).await;
    let later = "insert into mill.orders values (1)";
    mill.sql(later).await;
    read_until(&mill, &id, |read| read["lagEvents"] == 1 && read["state"] == "enabled").await;
    mill.sql(&keep(31)).await;
    let read = read_until(&mill, &id, |read| read["state"] == "disabled").await;
    assert_eq!(read["reason"], "Undelivered", "{read}");
    let mut superuser = mill.world.superuser("mill").await;
    let kept = "select 1 as n from dl.backlog";
    until("its release", async || rows(&mut superuser, kept).await.is_empty().then_some(())).await;
    assert_eq!(receiver.n_requests(), 0);
}

/// Ticks are made between the sweeps, whose statements differ then: one that asked a table which it may not read said nothing more.
#[tokio::test]
async fn what_fails_shows_in_the_object_that_mirrors_the_subscription() {
    let mill = Mill::open().await;
    let receiver = Receiver::good().await;
    let (id, _) = subscribed(&mill, &receiver, &json!({})).await;
    let name = format!("orders-{}", &id[id.len() - 12..]);
    let delivering = async |is_so: &str, reason: &str| {
        until_ok(reason, async || {
            let status = mill.world.status("WebhookSubscription", &name);
            let found = condition(&status, "Delivering").clone();
            match (&found["status"], &found["reason"]) == (&json!(is_so), &json!(reason)) {
                true => Ok((found, status)),
                false => Err(status),
            }
        })
        .await
    };
    mill.sql("insert into mill.orders values (1)").await;
    requests(&receiver, 1).await;
    delivering("True", "Delivering").await;
    mill.told("one", "PATCH", &format!("/{id}"), json!({"url": "http://127.0.0.1:9/"}), 200).await;
    for n in 2..4 {
        mill.sql(&format!("insert into mill.orders values ({n}); insert into mill.bags values ({n})")).await;
        read_until(&mill, &id, |read| read["lagEvents"] == n - 1).await;
    }
    let (condition, status) = delivering("False", "Failing").await;
    let message = condition["message"].as_str().expect("a text");
    assert!(message.contains("the receiver refused the connection"), "{condition}");
    assert_eq!(status["id"], id, "{status}");
    mill.told("one", "PATCH", &format!("/{id}"), json!({"url": receiver.url("/hooks")}), 200).await;
    requests(&receiver, 2).await;
    delivering("True", "Delivering").await;
}
