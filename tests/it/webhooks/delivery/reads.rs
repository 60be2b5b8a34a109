//! What deliveries ask of PostgreSQL: once for all subscriptions of a key that stand at one position, and once for many small batches.

use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::servers::receiver::{Answer, Receiver};
use rowgate_tests::wait::until;
use serde_json::json;

use super::{requests, subscribed, told};
use crate::webhooks::fixture::Mill;

const N_SUBSCRIPTIONS: usize = 20;
const N_ROWS: usize = 200;

/// How often the log was read and rows were judged, once all sessions of the program have ended, which count when they do. What counts what
/// waits reads it by `dl.pending`.
async fn calls(server: &Server) -> [i64; 2] {
    let of = "select coalesce(sum(calls) filter (where funcname = 'events'), 0)::int8 - coalesce(sum(calls) filter (where funcname = 'pending'), 0)::int8 as reads,
              coalesce(sum(calls) filter (where funcname = 'permitted'), 0)::int8 as judged from pg_stat_user_functions where schemaname = 'dl'";
    let found = rows(&mut server.connect("mill").await, of).await;
    ["reads", "judged"].map(|name| found[0][name].as_i64().expect("a number"))
}

/// Seen to fail where no page is shared.
#[tokio::test]
async fn subscriptions_of_one_key_read_and_are_judged_once() {
    let server = Server::with(&["track_functions=pl"]).await;
    let mut mill = Mill::on(&server, "limits: {subscriptions: 30}").await;
    let mut receivers = Vec::new();
    for i in 0..N_SUBSCRIPTIONS {
        // a host gets 16 at a time
        let receiver =
            Receiver::at(&format!("127.0.0.{}", 10 + i), |_| Box::pin(async { Answer::Status(200) })).await;
        subscribed(&mill, &receiver, &json!({})).await;
        receivers.push(receiver);
    }
    let other = Receiver::good().await;
    let body = json!({"name": "orders", "url": other.url("/hooks"), "filter": {"tables": ["orders"]}});
    mill.told("narrow", "POST", "", body, 201).await;
    execute(&mut server.connect("mill").await, "insert into mill.orders values (1, 'of those with a right')")
        .await;
    for receiver in &receivers {
        assert_eq!(requests(receiver, 1).await[0].events()[0]["data"]["note"], "of those with a right");
    }
    let narrow = requests(&other, 1).await[0].events();
    assert!(narrow[0]["data"]["note"].is_null(), "what another key is given: {narrow:?}");
    assert!(mill.world.stop().await.success());
    let calls =
        until("what they counted", async || Some(calls(&server).await).filter(|calls| !calls.contains(&0)))
            .await;
    assert!(
        calls.iter().all(|n| *n < 12),
        "{calls:?} reads and judgements for {N_SUBSCRIPTIONS} subscriptions of one key"
    );
}

/// Seen to fail where each batch reads a page of its own.
#[tokio::test]
async fn batches_of_one_event_share_a_page() {
    let server = Server::with(&["track_functions=pl"]).await;
    let mut mill = Mill::on(&server, "limits: {subscriptions: 3}").await;
    let receiver = Receiver::good().await;
    subscribed(&mill, &receiver, &json!({"batch": {"maxEvents": 1}})).await;
    let insert = format!("insert into mill.orders select i from generate_series(1, {N_ROWS}) i");
    execute(&mut server.connect("mill").await, &insert).await;
    let all = requests(&receiver, N_ROWS).await;
    let seen: Vec<String> = all.iter().flat_map(told).collect();
    assert_eq!(seen, (1..=N_ROWS).map(|i| format!("insert {i}")).collect::<Vec<_>>());
    let mut conn = server.connect("mill").await;
    let done = "select 1 from dl.subscriptions where lease is null";
    until("the end of the delivery", async || (!rows(&mut conn, done).await.is_empty()).then_some(())).await;
    assert!(mill.world.stop().await.success());
    let [n, _] =
        until("what they counted", async || Some(calls(&server).await).filter(|calls| !calls.contains(&0)))
            .await;
    assert!(n < 150, "{n} reads for {N_ROWS} events");
}
