//! A data plane that sees other tables than before wakes reconciling: nothing else would for an hour here.

use rowgate_tests::client::Reply;
use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::wait::until;
use serde_json::json;

use super::Hand;

const FIRST: &str = "items?$first=1";

/// Asks until the answer is what `wanted` says; meanwhile nobody sees a row of `b`, except where `open` says so.
async fn comes(hand: &Hand, what: &str, open: bool, wanted: impl Fn(&Reply) -> bool) {
    until(what, async || {
        let reply = hand.get(&hand.world.url(), FIRST).await;
        // seen beside much else: for an instant the new table is there and no right on it
        assert!([200, 404, 503].contains(&reply.status.as_u16()), "{reply:?}");
        assert!(open || !reply.body.contains(r#""owner":"b""#), "{reply:?}");
        wanted(&reply).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_was_changed_by_hand_is_repaired_without_waiting_for_the_next_look() {
    let hand = Hand::new(&[], 3600).await;
    let mut owner = hand.owner().await;
    let is_row = |reply: &Reply| reply.status == 200 && reply.json()["value"][0]["id"] == 2;
    comes(&hand, "the first row", false, is_row).await;

    // Security that was turned off comes back, and with it the entity.
    execute(&mut owner, "alter table app.items disable row level security, force row level security").await;
    let flags = "select relrowsecurity and not relforcerowsecurity as on from pg_class where oid = 'app.items'::regclass";
    until("row-level security", async || {
        hand.get(&hand.world.url(), FIRST).await;
        (rows(&mut owner, flags).await[0] == json!({"on": true})).then_some(())
    })
    .await;
    comes(&hand, "the first row again", false, is_row).await;

    // A policy that was dropped, or widened.
    execute(&mut owner, "drop policy own on app.items; create policy wide on app.items using (true)").await;
    comes(&hand, "the policy of the manifest", true, |reply| is_row(reply)).await;
    let policies = "select polname from pg_policy where polrelid = 'app.items'::regclass";
    assert_eq!(rows(&mut owner, policies).await, [json!({"polname": "own"})]);

    // Another table under the old name: closed until it is secured and granted.
    execute(
        &mut owner,
        "drop view app.shown; drop table app.items;
         create table app.items (id int primary key, owner text not null, n int);
         insert into app.items select i, case when i % 2 = 0 then 'a' else 'b' end, i from generate_series(1, 10) i;
         create view app.shown as select id, owner from app.items",
    )
    .await;
    comes(&hand, "the new table", false, |reply| reply.body.contains(r#"{"id":2,"owner":"a","n":2}"#)).await;

    // A column that is new stays closed, whoever looks.
    execute(&mut owner, "alter table app.items add extra int default 1, alter n type text using 'n' || n")
        .await;
    comes(&hand, "the new type", false, |reply| reply.body.contains(r#"{"id":2,"owner":"a","n":"n2"}"#))
        .await;
}
