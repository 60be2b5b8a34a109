//! Nothing leaves for a key that lives no more, nor for one that may not read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowgate_tests::servers::postgres::rows;
use rowgate_tests::servers::receiver::{Answer, Receiver};
use rowgate_tests::wait::until;
use serde_json::json;

use super::{requests, subscribed, told};
use crate::webhooks::fixture::Mill;

/// Never answers while it holds.
async fn holding(holds: Arc<AtomicBool>) -> Receiver {
    Receiver::at("127.0.0.1", move |_| {
        let holds = holds.load(Ordering::Acquire);
        Box::pin(async move { if holds { Answer::Hang } else { Answer::Status(200) } })
    })
    .await
}

/// Seen to fail where a delivery does not look at its owner.
#[tokio::test]
async fn a_revoked_owner_ends_the_delivery_under_way_and_nothing_leaves_any_more() {
    let mill = Mill::open().await;
    let receiver = holding(Arc::new(AtomicBool::new(true))).await;
    let witness = Receiver::good().await;
    let (id, _) = subscribed(&mill, &receiver, &json!({})).await;
    let body = json!({"name": "witness", "url": witness.url("/witness"), "filter": {"tables": ["orders"]}});
    mill.told("two", "POST", "", body, 201).await;
    mill.sql("insert into mill.orders values (1)").await;
    requests(&receiver, 1).await;
    assert_eq!(receiver.open().0, 1, "the request is under way");

    let key = "metadata: {name: one}\nspec: {tenantRef: {name: mill}";
    mill.world.edit("mill.yaml", key, &format!("{key}, revoked: true"));
    until("the end of the request", async || (receiver.open().0 == 0).then_some(())).await;
    // it was ended for its owner, and not because no answer came
    let mut superuser = mill.world.superuser("mill").await;
    let attempts = format!("select 1 as n from dl.deliveries where subscription = '{id}'");
    mill.sql("insert into mill.orders values (2)").await;
    requests(&witness, 2).await;
    let text = format!("select state, owner_inactive, attempts from dl.subscriptions where id = '{id}'");
    until("its owner's end", async || {
        let found = rows(&mut superuser, &text).await;
        (found[0]["owner_inactive"] == true).then_some(())
    })
    .await;
    assert!(rows(&mut superuser, &attempts).await.is_empty(), "no attempt came to its end");
    // a replay enables, and sends nothing
    mill.sql(&format!("update dl.subscriptions set state = 'enabled', cursor_tick = 1 where id = '{id}'"))
        .await;
    mill.sql("insert into mill.orders values (3)").await;
    requests(&witness, 3).await;
    assert_eq!(rows(&mut superuser, &text).await[0]["state"], "enabled");
    assert_eq!(receiver.n_requests(), 1, "nothing leaves for a dead key");

    // another owner goes on, with what was not delivered
    let other = rows(&mut superuser, "select owner_key from dl.subscriptions where name = 'witness'").await;
    let other = other[0]["owner_key"].as_str().expect("an id").to_owned();
    let hand_over = format!(
        "update dl.subscriptions set owner_key = '{other}', owner_inactive = false, rels = null, url = '{}' where id = '{id}'",
        witness.url("/other")
    );
    mill.sql(&hand_over).await;
    until("what was kept", async || {
        let taken = witness.requests().into_iter().filter(|request| request.path == "/other");
        (taken.flat_map(|request| told(&request)).collect::<Vec<_>>() == ["insert 1", "insert 2", "insert 3"])
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_scoped_owner_is_sent_the_columns_that_it_may_read() {
    let mill = Mill::open().await;
    let receiver = Receiver::good().await;
    let body = json!({"name": "narrow", "url": receiver.url("/narrow")});
    mill.told("narrow", "POST", "", body, 201).await;
    mill.sql("insert into mill.orders values (1, 'secret'); insert into mill.bags values (2, 'secret')")
        .await;
    let body = json!({"name": "b", "url": receiver.url("/x"), "payloadQuery": "select note from mill.orders where id = @id for json path"});
    let refused = mill.told("narrow", "POST", "", body, 400).await;
    assert_eq!(refused["error"]["code"], "InvalidPayloadQuery", "{refused}");
    let got = requests(&receiver, 1).await;
    assert_eq!(told(&got[0]), ["insert 1"]);
    assert_eq!(got[0].events()[0]["data"], json!({"id": 1}));
    assert!(!got[0].body.contains("secret"), "{:?}", got[0]);
}
