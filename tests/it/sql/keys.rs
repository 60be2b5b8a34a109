//! Whose query it is: a key that is revoked or changed has none any more, a running one too.

use std::time::Instant;

use rowgate_tests::wait::until;
use serde_json::json;

use super::fixture::{Lab, refusal};

const RUNNING: &str = "select count(*) as n from pg_stat_activity where datname = 'lab' and state = 'active' and usename like 'key\\_%'";

#[tokio::test]
async fn revoking_a_key_ends_its_query_within_2_seconds() {
    let lab = Lab::open().await;
    let asked = lab.ask("north", "select count(*) as n from generate_series(1, 1000000000000)", json!({}));
    let revoked = async {
        until("the query", async || (lab.seen(RUNNING).await[0]["n"] == 1).then_some(())).await;
        lab.sql("update dl.keys set revoked_at = now() where name = 'north'; notify rowgate").await;
        Instant::now()
    };
    let (reply, at) = tokio::join!(asked, revoked);
    let took = at.elapsed();
    let (status, code, _) = refusal(&reply);
    assert_eq!((status, code.as_str()), (401, "Unauthorized"), "{reply:?}");
    assert!(took.as_secs() < 60, "its statement timeout would have ended it by now");
    until("the end of the statement", async || (lab.seen(RUNNING).await[0]["n"] == 0).then_some(())).await;
}

#[tokio::test]
async fn rights_are_those_of_the_moment() {
    let lab = Lab::looked_at().await;
    let query = "select count(*) as n from lab.kinds";
    assert_eq!(lab.rows("north", query).await, json!([{"n": 3}]));
    lab.world.edit(
        "lab.yaml",
        "      - {entity: notes, actions: [read], fields: {include: [id, region, word]}}\n      - {entity: kinds, actions: [read], fields: {include: ['*']}}\n---\napiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {name: south}",
        "      - {entity: notes, actions: [read], fields: {include: [id, region, word]}}\n---\napiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {name: south}",
    );
    let message = until("the loss of a right", async || {
        let reply = lab.ask("north", query, json!({})).await;
        (reply.status != 200).then(|| refusal(&reply))
    })
    .await;
    assert_eq!((message.0, message.1.as_str()), (400, "InvalidSql"), "{message:?}");
    assert!(
        message.2.contains("names lab.kinds, which does not exist or which this API key may not read"),
        "{message:?}"
    );
    lab.sql("alter table lab.notes disable row level security").await;
    // Closed as soon as it is seen, open when the operator has repaired it.
    until("the repair", async || {
        let is_guarded =
            lab.seen("select relrowsecurity as a from pg_class where oid = 'lab.notes'::regclass").await;
        (is_guarded[0]["a"] == true).then_some(())
    })
    .await;
    let rows = until("the rows", async || {
        let reply = lab.ask("north", "select count(*) as n from lab.notes", json!({})).await;
        (reply.status == 200).then(|| reply.json()["value"].clone())
    })
    .await;
    assert_eq!(rows, json!([{"n": 50}]));
}
