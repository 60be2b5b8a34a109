//! What receivers get: signed, in order, tried again, isolated, given up, sent again; and what they never get.

mod again;
mod away;
mod failures;
mod fairness;
mod libraries;
mod owners;
mod payloads;
mod reads;

use rowgate_tests::servers::postgres::rows;
use rowgate_tests::servers::receiver::{Receiver, Request};
use rowgate_tests::wait::until;
use serde_json::{Value, json};

use super::fixture::{Mill, id};

/// A subscription of the key `one` to orders, with these members besides.
async fn subscribed(mill: &Mill, receiver: &Receiver, more: &Value) -> (String, String) {
    let mut body = json!({
        "name": "orders", "url": receiver.url("/hooks"), "filter": {"tables": ["orders"]},
        "retry": {"maxAttempts": 5, "initialDelay": 1, "maxDelay": 1},
    });
    if let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) {
        body.extend(more.clone());
    }
    let made = mill.told("one", "POST", "", body, 201).await;
    (id(&made), made["secret"].as_str().expect("it is shown once").to_owned())
}

/// Waits for so many requests.
async fn requests(receiver: &Receiver, n: usize) -> Vec<Request> {
    until(&format!("{n} requests"), async || {
        let requests = receiver.requests();
        (n <= requests.len()).then_some(requests)
    })
    .await
}

/// What is told of a subscription, once that is so.
async fn read_until(mill: &Mill, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    rowgate_tests::wait::until_ok("a subscription in that state", async || {
        let read = mill.told("one", "GET", &format!("/{id}"), Value::Null, 200).await;
        if is_so(&read) { Ok(read) } else { Err(read) }
    })
    .await
}

/// Waits until no replica holds a subscription.
async fn is_given_back(mill: &Mill) {
    let mut superuser = mill.world.superuser("mill").await;
    let held = "select 1 as n from dl.subscriptions where lease is not null";
    until("the end of the worker", async || rows(&mut superuser, held).await.is_empty().then_some(())).await;
}

/// The rows that events are about, such as `insert 1`.
fn told(request: &Request) -> Vec<String> {
    let events = request.events();
    let of = |event: &Value| format!("{} {}", event["op"].as_str().unwrap_or_default(), event["key"]["id"]);
    events.iter().map(of).collect()
}
