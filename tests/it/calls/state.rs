//! Whose session a call has, and that nothing of one call reaches the next.

use std::collections::BTreeMap;

use rowgate_tests::wait::until;
use serde_json::{Value, json};

use super::fixture::{Desk, given};

async fn who(desk: &Desk, key: &str) -> (String, String, i64) {
    let row = given(&desk.call(key, "who", json!({})).await)[0].clone();
    let text = |name: &str| row[name].as_str().expect("a text").to_owned();
    (text("me"), text("login"), row["pid"].as_i64().expect("a number"))
}

/// Seen to fail without DISCARD ALL, and with sessions that keys of one role share.
#[tokio::test]
async fn a_session_is_one_keys_and_each_call_finds_it_as_new() {
    let desk = Desk::open().await;
    let role = |key: &str| desk.world.status("ApiKey", key)["role"].as_str().expect("a role").to_owned();
    let tenant = desk.world.status("Tenant", "desk")["tenantId"].as_str().expect("an id").to_owned();
    let mut pids = BTreeMap::new();
    for key in ["plain", "clerk", "other", "second"] {
        let (me, login, pid) = who(&desk, key).await;
        let own = role(key);
        assert_eq!(me, own, "{key}");
        let expected = if own == "datalake_user" { format!("t{tenant}_sql") } else { own };
        assert_eq!(login, expected, "{key}");
        assert_eq!(who(&desk, key).await.2, pid, "{key} has its session again");
        assert!(pids.insert(pid, key).is_none(), "{key} has a session of its own: {pids:?}");
    }
    // What stands there for everybody to find.
    let noted = desk.rows("select pid, key_id, login from dl.backends order by pid").await;
    let noted: Vec<i64> = noted.iter().map(|row| row["pid"].as_i64().expect("a number")).collect();
    assert_eq!(noted, pids.keys().copied().collect::<Vec<_>>());

    for key in ["plain", "clerk"] {
        let before = given(&desk.call(key, "found", json!({})).await);
        let pid = who(&desk, key).await.2;
        given(&desk.call(key, "leave", json!({"mark": "a mark"})).await);
        assert_eq!(who(&desk, key).await.2, pid, "{key}: the same session");
        let after = given(&desk.call(key, "found", json!({})).await);
        // A setting without a name of PostgreSQL's is empty afterwards.
        assert_eq!(after[0], json!({"what": "mark", "value": ""}), "{key}");
        assert_eq!(after.as_array().expect("a list")[1..], before.as_array().expect("a list")[1..], "{key}");
        let value = |what: &str| {
            let all: &Vec<Value> = before.as_array().expect("a list");
            all.iter().find(|row| row["what"] == what).expect("it is told")["value"].clone()
        };
        let role = if key == "plain" { "datalake_user" } else { "none" };
        for (what, expected) in [
            ("TimeZone", "UTC"),
            ("search_path", "pg_catalog, pg_temp"),
            ("statement_timeout", "600000"),
            ("role", role),
            ("locks", "0"),
            ("statements", "0"),
        ] {
            assert_eq!(value(what), expected, "{key} {what}");
        }
        // PostgreSQL tells of this one, and a session that has deviated is closed.
        given(&desk.call(key, "leave", json!({"mark": "a mark", "zone": true})).await);
        let after = given(&desk.call(key, "found", json!({})).await);
        assert_eq!(after, before, "{key}");
    }
}

/// Seen to fail where a call whose answer was lost is made again.
#[tokio::test]
async fn a_session_that_failed_half_way_is_not_used_again() {
    let desk = Desk::open().await;
    let pid = who(&desk, "clerk").await.2;
    let mut superuser = desk.server.connect("desk").await;
    sqlx::query("select pg_advisory_lock(4712)").execute(&mut superuser).await.expect("nobody holds it");
    let call = desk.begin(&desk.world.url(), "clerk", "gate", &json!({"n": 1}));
    until("the call at the gate", async || (desk.running("gate").await == 1).then_some(())).await;
    desk.rows(&format!("select pg_terminate_backend({pid})")).await;
    until("the answer", async || call.is_finished().then_some(())).await;
    let reply = call.await.expect("no panic");
    let (code, status, message) = super::fixture::refusal(&reply);
    assert_eq!((&*code, status), ("Unavailable", 503));
    assert!(message.contains("may have run"), "{message}");
    // Nobody has asked again.
    assert_eq!(desk.running("gate").await, 0);
    drop(superuser);
    assert_ne!(who(&desk, "clerk").await.2, pid);
    assert_eq!(desk.number("select count(*) from c.notes").await, 0);
    // An idle session that was ended is found to be, before a call is sent on it.
    let pid = who(&desk, "clerk").await.2;
    desk.rows(&format!("select pg_terminate_backend({pid}, 10000)")).await;
    given(&desk.call("clerk", "nothing", json!({"n": 3})).await);
    assert_eq!(desk.number("select count(*) from c.notes").await, 1);
}
