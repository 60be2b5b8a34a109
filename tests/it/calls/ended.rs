//! Calls that take too long, and calls that nobody waits for.

use rowgate_tests::wait::until;
use serde_json::json;

use super::fixture::{Desk, given, refusal};

/// Seen to fail where a call is asked to end and not ended: `stubborn` looks neither at that nor at its client.
#[tokio::test]
async fn a_call_ends_by_the_statement_timeout_whatever_it_traps() {
    let desk = Desk::open().await;
    desk.world.edit("desk.yaml", "{statementTimeout: 10m}", "{statementTimeout: 1s}");
    until("the shorter timeout", async || {
        let found = given(&desk.call("clerk", "found", json!({})).await);
        let all = found.as_array().expect("a list");
        all.iter().any(|row| row["what"] == "statement_timeout" && row["value"] == "1000").then_some(())
    })
    .await;
    for key in ["plain", "clerk"] {
        let reply = desk.call(key, "sleeps", json!({"seconds": 600})).await;
        assert_eq!(refusal(&reply).0, "StatementTimeout", "{reply:?}");
        let reply = desk.call(key, "stubborn", json!({})).await;
        assert_eq!(refusal(&reply).0, "StatementTimeout", "{reply:?}");
        until("the end of what traps its end", async || (desk.running("stubborn").await == 0).then_some(()))
            .await;
        assert_eq!(given(&desk.call(key, "scalar", json!({"a": 1, "b": 1})).await), json!([{"scalar": 2}]));
    }
}

#[tokio::test]
async fn a_call_whose_client_is_gone_ends() {
    let desk = Desk::open().await;
    for key in ["plain", "clerk"] {
        for (name, body) in [("sleeps", json!({"seconds": 600})), ("stubborn", json!({}))] {
            let call = desk.begin(&desk.world.url(), key, name, &body);
            until("the call", async || (desk.running(name).await == 1).then_some(())).await;
            call.abort();
            until("the end of the call", async || (desk.running(name).await == 0).then_some(())).await;
        }
    }
    // One that ends within a second or so is left to end.
    let call = desk.begin(&desk.world.url(), "clerk", "halves", &json!({"n": 1}));
    until("its work", async || (desk.number("select count(*) from c.notes").await == 2).then_some(())).await;
    call.abort();
    // Rows of sessions that are gone are swept away.
    until("one row for each session", async || {
        let of_none = "select count(*) from dl.backends b where not exists (select from pg_stat_activity a where a.pid = b.pid)";
        (desk.number(of_none).await == 0).then_some(())
    })
    .await;
}
