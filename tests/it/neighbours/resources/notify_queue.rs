//! The queue of NOTIFY is the whole server's: one session that listens and keeps a transaction open lets it fill.

use rowgate_tests::servers::postgres::{Server, attempt, connect, execute};
use rowgate_tests::stage::{DONE, On, Stage, Wish};
use rowgate_tests::wait::until;

use crate::neighbours::neighbour::Neighbour;
use crate::reconcile::acme::{SPEC, key, keys, one, reader, tenant};
use crate::reconcile::scenarios::{NOTES, done, scenarios};

scenarios!(a_full_queue_of_notifications_holds_nobody_up);

/// PostgreSQL 16 and before have 8 GB for it, whatever is set.
const FIRST_VERSION: i32 = 170_000;

/// Seen to fail with a full queue that is an error.
async fn a_full_queue_of_notifications_holds_nobody_up(on: On) {
    let mut server = Server::own().await;
    let mut superuser = server.connect("postgres").await;
    if one::<i32>(&mut superuser, "select current_setting('server_version_num')::int").await < FIRST_VERSION {
        return;
    }
    execute(&mut superuser, "alter system set max_notify_queue_pages = 64").await;
    drop(superuser);
    server.kill().await;
    server.start_again().await;
    let others = tenant("odd", SPEC) + &key("inside", "odd", &reader("north", "['*']"));
    let manifests = format!("{}{}---\n{others}", tenant("acme", SPEC), keys());
    let mut stage = Stage::over(on, Wish::default(), server, &manifests).await;
    done(&stage).await;
    stage.told("ApiKey", "inside", 1, DONE).await;
    let neighbour = Neighbour::of(&stage).await;

    // a key with SQL of its own
    let login = stage.role("inside", "odd").await;
    let mut listener = connect(&login).await.expect("a session");
    execute(&mut listener, "listen x").await;
    execute(&mut listener, "begin; select 1").await;
    let mut floods = connect(&login).await.expect("a session");
    let error = until("a full queue", async || {
        attempt(&mut floods, "select pg_notify('x', repeat('y', 7000) || random())").await.err()
    })
    .await;
    assert!(error.to_string().contains("NOTIFY queue"), "{error}");

    stage.put(&key("late", "acme", "")).await;
    stage.told("ApiKey", "late", 1, DONE).await;
    assert!(stage.opens(&stage.key("late").await, NOTES).await);
    stage.remove("ApiKey", "late").await;
    stage.gone("ApiKey", "late").await;
    until("a word on the queue", async || stage.log().contains("notification queue").then_some(())).await;
    assert!(!stage.log().contains("control database does not answer"), "{}", stage.log());
    assert!(attempt(&mut floods, "notify x").await.is_err(), "it was full all the time");
    neighbour.ends_well(&stage).await;
}
