//! A table that is away for a while: what happened to its rows before is given once it is there again, by deliveries and to readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::rows;
use rowgate_tests::servers::receiver::Receiver;
use rowgate_tests::wait::until;
use rowgate_tests::world::status::says;
use serde_json::{Value, json};

use super::{read_until, requests, subscribed, told};
use crate::webhooks::fixture::Mill;

async fn page(mill: &Mill, path: &str) -> Reply {
    let url = format!("{}{path}", mill.world.url());
    Client::new().get(&url, &[("X-API-Key", &mill.world.key("one"))]).await
}

fn n_events(page: &Reply) -> usize {
    assert_eq!(page.status, 200, "{page:?}");
    page.json()["events"].as_array().expect("a list").len()
}

/// Events of orders and of bags that are not delivered, and a dead letter.
///
/// Seen to fail where readers, and where deliveries leave a table out that is away: what came behind its events was given, and they never.
#[tokio::test]
async fn what_happened_to_a_table_that_is_away_is_given_once_it_is_there_again() {
    let mill = Mill::open().await;
    let fails = Arc::new(AtomicBool::new(true));
    let failing = fails.clone();
    let status = move || if failing.load(Ordering::Acquire) { 500 } else { 200 };
    let (receiver, _gate) = Receiver::gated(true, status).await;
    let more = json!({"filter": {"tables": ["orders", "bags"]}, "retry": {"maxAttempts": 1}, "batch": {"maxEvents": 1}});
    let (id, _) = subscribed(&mill, &receiver, &more).await;
    mill.sql("insert into mill.orders values (1)").await;
    read_until(&mill, &id, |read| read["deadLetters"] == 1 && read["lagEvents"] == 0).await;
    mill.told("one", "PATCH", &format!("/{id}"), json!({"suspend": true}), 200).await;
    mill.sql("insert into mill.orders values (2); insert into mill.bags values (3)").await;
    let other = Receiver::good().await;
    subscribed(&mill, &other, &json!({"filter": {"tables": ["bags"]}})).await;
    fails.store(false, Ordering::Release);

    mill.sql("alter table mill.orders rename to away").await;
    until("a look that finds it away", async || {
        (page(&mill, "/auth/mill/api/orders").await.status == 503).then_some(())
    })
    .await;
    let n = receiver.n_requests();
    mill.told("one", "POST", &format!("/{id}/dead-letters/redrive"), Value::Null, 202).await;
    mill.told("one", "PATCH", &format!("/{id}"), json!({"suspend": false}), 200).await;
    for path in ["?after=start", "?after=start&tables=orders", "?after=start&tables=bags,mill.orders"] {
        let answer = page(&mill, &format!("/api/ddl/events{path}")).await;
        assert_eq!(answer.status, 503, "{path}: {answer:?}");
    }
    assert_eq!(n_events(&page(&mill, "/api/ddl/events?after=start&tables=bags").await), 1);
    // a reader of bags alone goes on
    mill.sql("insert into mill.bags values (4)").await;
    requests(&other, 1).await;
    assert_eq!(receiver.n_requests(), n, "nothing is sent of what cannot be read");

    mill.sql("alter table mill.away rename to orders").await;
    let events = until("what was not delivered", async || {
        let events: Vec<String> = receiver.requests()[n..].iter().flat_map(told).collect();
        (4 <= events.len()).then_some(events)
    })
    .await;
    assert_eq!(events, ["insert 1", "insert 2", "insert 3", "insert 4"]);
    let answer = page(&mill, "/api/ddl/events?after=start").await;
    assert_eq!(n_events(&answer), 4, "{answer:?}");
}

/// Nothing asks the replica meanwhile, which could bring a newer catalog.
#[tokio::test]
async fn a_tenant_whose_only_captured_table_is_away_keeps_its_subscriptions() {
    let mill = Mill::open().await;
    let receiver = Receiver::good().await;
    let (id, _) = subscribed(&mill, &receiver, &json!({"suspend": true})).await;
    let bags = "source: {schema: mill, object: bags}\n";
    mill.world.edit("mill.yaml", &format!("{bags}      events: true\n"), bags);
    let mut superuser = mill.world.superuser("mill").await;
    let captured = "select 1 as n from pg_trigger where tgrelid = 'mill.bags'::regclass and not tgisinternal";
    until("bags that are not captured", async || {
        rows(&mut superuser, captured).await.is_empty().then_some(())
    })
    .await;
    mill.sql("insert into mill.orders values (1)").await;
    mill.sql("alter table mill.orders rename to away").await;
    says(&mill.world, "Tenant", "mill", "SourceNotFound").await;
    mill.told("one", "PATCH", &format!("/{id}"), json!({"suspend": false}), 200).await;
    let listed = mill.told("one", "GET", "", Value::Null, 200).await;
    assert_eq!(listed["subscriptions"][0]["id"], *id, "{listed}");
    mill.sql("alter table mill.away rename to orders").await;
    let got = requests(&receiver, 1).await;
    assert_eq!(told(&got[0]), ["insert 1"]);
}
