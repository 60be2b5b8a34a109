//! What a key that dies has under way ends with it: pages break off, and writes that wait are not done.

use std::time::{Duration, Instant};

use rowgate_core::problem::Code;
use rowgate_tests::asked::Asked;
use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::until;
use tokio::task::JoinHandle;

use super::crowd::{Crowd, refuses, tenant, url};

/// Two seconds are promised; this is what a machine may take that does much else.
const BOUND: Duration = Duration::from_secs(5);

fn patch(base: &str, key: &str, secret: String) -> JoinHandle<Reply> {
    let url = url(base, key, "/notes/id/1");
    tokio::spawn(async move {
        let headers = [("X-API-Key", secret.as_str()), ("Content-Type", "application/json")];
        Client::new().send("PATCH", &url, &headers, "{\"body\": \"written\"}").await
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_and_writes_of_a_revoked_key_end_and_those_of_others_do_not() {
    let crowd = Crowd::new(&["big"], &["--client-timeout-seconds", "120"]).await;
    let neighbour = crowd.neighbour("big-c");
    let (mut dead, mut alive) = (crowd.slow_reader("big-a").await, crowd.slow_reader("big-b").await);
    crowd.running("big", "long", 2).await;
    let mut lock = crowd.server.connect("big").await;
    execute(&mut lock, "begin; update t.notes set body = 'locked' where id = 1").await;
    let base = crowd.world.url();
    let write = patch(&base, "big-a", crowd.world.key("big-a"));
    let other = patch(&base, "big-b", crowd.world.key("big-b"));
    crowd.running("big", "notes", 2).await;

    crowd.revoke("big-a").await;
    let revoked = Instant::now();
    let refused = write.await.expect("no panic");
    assert!(refused.status == 401 && refuses(&refused, Code::Unauthorized), "{refused:?}");
    crowd.running("big", "long", 1).await;
    crowd.running("big", "notes", 1).await;
    println!("both had ended {:?} after the revocation", revoked.elapsed());
    assert!(revoked.elapsed() < BOUND, "{:?}", revoked.elapsed());
    assert!(!dead.is_whole().await, "what was cut must not look whole");
    let ended = "rowgate_database_exchanges_ended_total{tenant=\"big\",reason=\"dead_key\"}";
    assert_eq!(crowd.metric(ended).await, 2);

    // Nobody has written it but the key that lives.
    execute(&mut lock, "rollback").await;
    assert_eq!(other.await.expect("no panic").status, 200);
    assert_eq!(crowd.number("big", "select count(*) from t.notes where body = 'written'").await, 1);
    assert!(alive.is_whole().await, "its key lives");
    assert_eq!(crowd.get("big-a", "/notes?$first=1").await.status, 401);
    neighbour.always_answered().await;
}

async fn a_write_of_a_deleted_key_is_not_done(on: On) {
    let mut stage = Stage::open(on, &tenant("big")).await;
    stage.told("Tenant", "big", 1, DONE).await;
    for key in ["big-a", "big-b"] {
        stage.told("ApiKey", key, 1, DONE).await;
    }
    let secrets = [stage.key("big-a").await, stage.key("big-b").await];
    let path = "/auth/big/api/notes?$first=1";
    let neighbour = Asked::begin(format!("{}{path}", stage.url()), secrets[1].clone(), &stage.pids());
    // Both are known.
    for secret in &secrets {
        assert!(stage.opens(secret, path).await);
    }
    let mut superuser = stage.server.connect("big").await;
    let mut lock = stage.server.connect("big").await;
    execute(&mut lock, "begin; update t.notes set body = 'locked' where id = 1").await;
    let write = patch(&stage.url(), "big-a", secrets[0].clone());
    let waiting =
        "select 1 as n from pg_stat_activity where application_name = 'rowgate' and wait_event_type = 'Lock'";
    until("a write that waits", async || (rows(&mut superuser, waiting).await.len() == 1).then_some(()))
        .await;
    stage.remove("ApiKey", "big-a").await;
    let refused = write.await.expect("no panic");
    assert!(refused.status == 401 && refuses(&refused, Code::Unauthorized), "{refused:?}");
    until("the end of its statement", async || rows(&mut superuser, waiting).await.is_empty().then_some(()))
        .await;
    execute(&mut lock, "rollback").await;
    let written = "select id from t.notes where body <> 'first'";
    assert!(rows(&mut superuser, written).await.is_empty(), "nothing was written");
    neighbour.always_answered().await;
}

mod on_folder {
    use super::On;

    #[tokio::test]
    async fn a_write_of_a_deleted_key_is_not_done() {
        Box::pin(super::a_write_of_a_deleted_key_is_not_done(On::Folder)).await;
    }
}

mod on_cluster {
    use super::On;

    #[tokio::test]
    async fn a_write_of_a_deleted_key_is_not_done() {
        Box::pin(super::a_write_of_a_deleted_key_is_not_done(On::Cluster)).await;
    }
}
