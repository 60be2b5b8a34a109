//! Many calls at once.

use rowgate_tests::wait::until;
use serde_json::json;

use super::fixture::{Desk, given};

const CALLERS: usize = 64;
const CALLS: usize = 1_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_calls_each_gets_its_own_answer() {
    let desk = Desk::open().await;
    let keys = ["plain", "clerk", "other", "second"];
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (client, url) = (desk.client.clone(), desk.world.url());
            let key = desk.world.key(keys[caller % keys.len()]);
            tokio::spawn(async move {
                for n in (caller..CALLS).step_by(CALLERS) {
                    let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
                    let (name, body, expected) = match n % 3 {
                        0 => ("scalar", json!({"a": n, "b": 1_000_000}), json!([{"scalar": n + 1_000_000}])),
                        1 => ("counted", json!({"n": n}), json!([{"total": 2 * n, "last": format!("n{n}")}])),
                        _ => ("nothing", json!({"n": n}), json!([])),
                    };
                    let url = format!("{url}/auth/desk/api/{name}");
                    let reply = client.send("POST", &url, &headers, &body.to_string()).await;
                    assert_eq!(given(&reply), expected, "{name} {n}");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("each answer is its own");
    }
    let n_notes = (0..CALLS).filter(|n| n % 3 == 2).count();
    let counted = "select count(*) from (select n from c.notes group by n having count(*) = 1) s";
    assert_eq!(usize::try_from(desk.number(counted).await), Ok(n_notes), "each once");
    let sessions = "select count(*) from pg_stat_activity where usename ~ '^key_|_sql$' and datname = 'desk'";
    assert!(desk.number(sessions).await <= 5, "four, and one that is just closing");
}

/// Seen to fail with a share as large as the whole.
#[tokio::test]
async fn one_key_leaves_a_turn_to_others() {
    let desk = Desk::open().await;
    let mut superuser = desk.server.connect("desk").await;
    sqlx::query("select pg_advisory_lock(4712)").execute(&mut superuser).await.expect("nobody holds it");
    let held: Vec<_> =
        (0..6).map(|n| desk.begin(&desk.world.url(), "clerk", "gate", &json!({"n": n}))).collect();
    until("three calls at the gate", async || (desk.running("gate").await == 3).then_some(())).await;
    assert_eq!(given(&desk.call("plain", "scalar", json!({"a": 1, "b": 1})).await), json!([{"scalar": 2}]));
    assert_eq!(desk.running("gate").await, 3);
    drop(superuser);
    for call in held {
        given(&call.await.expect("no panic"));
    }
}
