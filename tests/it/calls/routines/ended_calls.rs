//! Calls of a key that was revoked are ended, by reconciling too, and before the key's role is closed.

use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::session;
use rowgate_pg::tenant::backends;
use rowgate_tests::servers::postgres::{attempt, connect, execute};
use rowgate_tests::servers::reconciler::Reconciler;
use rowgate_tests::wait::until;
use sqlx::PgConnection;

use super::{acme, caller};
use crate::reconcile::acme::one;

/// A call that outlives what it is told to: it traps a cancellation.
const STUBBORN: &str = "do $$ begin loop begin perform pg_sleep(600); exception when query_canceled then null; end; end loop; end $$";

/// Registers a call as the login of look-ups does, and only while the key lives. Says whether it did.
async fn register(reconciler: &Reconciler, key: &str, conn: &mut PgConnection) -> bool {
    // whoever became datalake_user does not see since when its own backend runs
    let pid: i32 = one(conn, "select pg_backend_pid()").await;
    let started =
        sqlx::query_scalar("select backend_start::text from pg_stat_activity where pid = $1").bind(pid);
    let started: String =
        started.fetch_one(&mut reconciler.server.connect("acme").await).await.expect("it runs");
    let login = match key {
        "web" => reconciler.login("acme", TenantLogin::Sql).role,
        key => reconciler.key(key, "acme").role,
    };
    let mut lookups =
        connect(&reconciler.login("acme", TenantLogin::Lookups)).await.expect("the login of look-ups");
    let id = reconciler.file("apikey", key).expect("it was told")["status"]["apiKeyId"].clone();
    let register = sqlx::query(
        "insert into dl.backends (pid, backend_start, key_id, login, replica) \
         select $1, $2::timestamptz, id, $3::name, 'r1' from dl.live where id = $4",
    );
    let id = id.as_str().expect("a text");
    let done = register.bind(pid).bind(started).bind(login).bind(id).execute(&mut lookups).await;
    done.expect("the login of look-ups may register calls").rows_affected() == 1
}

/// Seen to fail with a pass that ends nothing, and, for a scoped key, with one that ends it after the role was closed.
#[tokio::test]
async fn a_pass_ends_the_calls_of_a_dead_key_and_no_others() {
    let reconciler = acme().await;
    let mut records =
        connect(&reconciler.login("acme", TenantLogin::Records)).await.expect("the login of dl");
    let mut other = caller(&reconciler, "south").await;
    assert!(register(&reconciler, "south", &mut other).await);
    for key in ["north", "web"] {
        let mut conn = caller(&reconciler, key).await;
        assert!(register(&reconciler, key, &mut conn).await);
        let running = tokio::spawn(async move { attempt(&mut conn, STUBBORN).await });
        until("the call", async || {
            let busy = "select count(*) from pg_stat_activity where query like 'do %' and state = 'active'";
            (one::<i64>(&mut reconciler.server.connect("acme").await, busy).await == 1).then_some(())
        })
        .await;
        let revoke = sqlx::query("select dl.revoke(id) from dl.keys where name = $1").bind(key);
        revoke.execute(&mut records).await.expect("the owner of dl may revoke");
        until("the end of the call", async || running.is_finished().then_some(())).await;
        let ended = running.await.expect("no panic").expect_err("it has no end of its own");
        let code = ended.as_database_error().and_then(|error| error.code());
        assert_eq!(code.as_deref(), Some("57P01"), "{key}: {ended}");
        // a key that is dead is registered no more
        assert!(!register(&reconciler, key, &mut other).await, "{key}");
    }
    assert_eq!(
        one::<String>(&mut other, "select current_user::text").await,
        reconciler.key("south", "acme").role
    );
}

/// Each login ends what is its own, a process that took the number of an ended one is left alone, and rows of what is gone
/// are forgotten.
#[tokio::test]
async fn a_backend_is_ended_as_its_own_role_and_only_that_one() {
    let mut reconciler = acme().await;
    let mut records =
        connect(&reconciler.login("acme", TenantLogin::Records)).await.expect("the login of dl");
    let mut north = caller(&reconciler, "north").await;
    assert!(register(&reconciler, "north", &mut north).await);
    reconciler.stop().await;
    execute(&mut records, "select dl.revoke(id) from dl.keys where name = 'north'").await;
    let mut auth =
        session::connect(&reconciler.login("acme", TenantLogin::Auth)).await.expect("the login of requests");
    let mut lookups = session::connect(&reconciler.login("acme", TenantLogin::Lookups))
        .await
        .expect("the login of look-ups");
    let sql = reconciler.login("acme", TenantLogin::Sql);

    assert!(backends::any_dead(&mut records).await.expect("the owner of dl sees it"));
    let dead = backends::dead(&mut lookups).await.expect("the login of look-ups reads it");
    let [dead] = &dead[..] else { panic!("{dead:?}") };
    let mut as_sql = session::connect(&sql).await.expect("t_sql's login");
    backends::end(&mut as_sql, dead, 1_000).await.expect_err("t_sql is no key");
    let later = backends::Backend { since: dead.since + 1, ..dead.clone() };
    assert!(backends::end(&mut auth, &later, 1_000).await.expect("a question"), "there is no such backend");
    assert_eq!(one::<i64>(&mut north, "select 1::bigint").await, 1);
    assert!(backends::end(&mut auth, dead, 5_000).await.expect("the key's role ends it"));
    assert!(sqlx::query("select 1").execute(&mut north).await.is_err());

    // who looks forgets what is gone
    backends::dead(&mut lookups).await.expect("a look");
    assert_eq!(backends::dead(&mut lookups).await.expect("a look"), []);
    assert_eq!(one::<i64>(&mut records, "select count(*) from dl.backends").await, 0);
}
