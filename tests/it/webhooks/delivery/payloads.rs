//! What `data` of an event is: what was captured, or what a payload query makes of it, on a replay too.

use rowgate_tests::servers::receiver::Receiver;
use rowgate_tests::wait::until;
use serde_json::{Value, json};

use super::{read_until, requests, subscribed, told};
use crate::webhooks::fixture::Mill;

#[tokio::test]
async fn a_payload_query_makes_the_data_and_runs_once_more_on_a_replay() {
    let mill = Mill::open().await;
    let receiver = Receiver::good().await;
    let query = "select o.note as \"order.note\", (select count(*) from mill.bags) as bags, @dl_op as op \
                 from mill.orders o where o.id = @id for json path, without_array_wrapper";
    let (id, _) = subscribed(&mill, &receiver, &json!({"payloadQuery": query})).await;
    mill.sql("insert into mill.orders values (1, 'a')").await;
    let got = requests(&receiver, 1).await;
    assert_eq!(got[0].events()[0]["data"], json!({"order": {"note": "a"}, "bags": 0, "op": "insert"}));
    mill.sql("insert into mill.bags values (7); delete from mill.orders").await;
    let got = requests(&receiver, 2).await;
    assert_eq!(told(&got[1]), ["delete 1"]);
    assert_eq!(got[1].events()[0]["data"]["note"], "a", "without a result it is what was captured");
    mill.sql("insert into mill.orders values (2, 'b')").await;
    requests(&receiver, 3).await;
    read_until(&mill, &id, |read| read["lagEvents"] == 0).await;

    let replay = json!({"fromRetentionStart": true});
    mill.told("one", "POST", &format!("/{id}/replay"), replay, 202).await;
    let again = until("what is sent again", async || {
        let events: Vec<Value> = receiver.requests()[3..].iter().flat_map(|it| it.events()).collect();
        (2 <= events.len()).then_some(events)
    })
    .await;
    // the first row is gone: only its delete is sent again
    let ops: Vec<&Value> = again.iter().map(|event| &event["op"]).collect();
    assert_eq!(ops, ["delete", "insert"]);
    assert_eq!(again[1]["data"], json!({"order": {"note": "b"}, "bags": 1, "op": "insert"}));
    assert!(receiver.requests()[3..].iter().all(|request| request.json()["replay"] == true));
}

#[tokio::test]
async fn ops_and_tables_are_what_the_filter_names_and_suspension_holds_them_back() {
    let mill = Mill::open().await;
    let receiver = Receiver::good().await;
    let more =
        json!({"filter": {"tables": ["orders", "bags"], "ops": ["delete", "truncate"]}, "suspend": true});
    let (id, _) = subscribed(&mill, &receiver, &more).await;
    mill.sql("insert into mill.orders values (1, 'a'); insert into mill.bags values (1); update mill.orders set note = 'b'; delete from mill.orders; truncate mill.bags").await;
    let read = read_until(&mill, &id, |read| read["lagEvents"] == 2).await;
    assert_eq!((&read["delivering"], &read["state"]), (&json!("Suspended"), &json!("enabled")), "{read}");
    assert_eq!(receiver.n_requests(), 0);
    mill.told("one", "PATCH", &format!("/{id}"), json!({"suspend": false}), 200).await;
    let events = until("both", async || {
        let events: Vec<Value> = receiver.requests().iter().flat_map(|it| it.events()).collect();
        (events.len() == 2).then_some(events)
    })
    .await;
    assert_eq!((&events[0]["op"], &events[0]["data"]["note"]), (&json!("delete"), &json!("b")));
    assert_eq!((&events[1]["op"], &events[1]["entity"]), (&json!("truncate"), &json!("bags")));
}
