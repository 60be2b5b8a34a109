//! PgBouncer in transaction mode: every other test of the wire through it, and what callers leave in sessions they share.

use rowgate_pg::wire::{Failure, RequestPool};
use rowgate_sql::shape::Encoding::{Int4, Text};
use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::wait::until;

use crate::postgres::wire::fixture::{Tenant, by, name, pass_over, utf8};

#[test]
fn the_wire_tests_pass_through_pgbouncer() {
    // How a client proves itself is PgBouncer's own setting, whatever pg_hba.conf says.
    pass_over("pgbouncer", &["a_server_that_asks_for_less_than_scram_is_refused"]);
}

/// One session for everybody, and two replicas that meet in it.
async fn two_replicas(name: &'static str) -> (Server, Tenant, [RequestPool; 2]) {
    // What was committed must outlive a SIGKILL.
    let server = Server::with_pooler(&["synchronous_commit=on"], 1).await;
    let tenant = Tenant::found(&server, name).await;
    let pools = [tenant.pool(), tenant.pool()];
    let mut pids = Vec::new();
    for pool in &pools {
        pids.push(tenant.text(pool, "a", "select pg_backend_pid()").await);
    }
    assert_eq!(pids[0], pids[1], "they meet in one session");
    (server, tenant, pools)
}

/// Seen to fail with a batch that does not leave the session's role, and with statements that have names.
#[tokio::test]
async fn what_one_caller_leaves_in_a_shared_session_does_not_matter_to_the_next() {
    let (_server, mut tenant, [first, second]) = two_replicas("wire_shared").await;
    let b = tenant.role("b");
    execute(
        &mut tenant.superuser,
        &format!(
            "create function app.leave(what text) returns text language plpgsql as $$
             begin execute what; return 'left'; end $$;
             create schema evil;
             grant usage on schema evil to public;
             create function evil.same(bytea, bytea) returns boolean language sql return true;
             create operator evil.= (leftarg = bytea, rightarg = bytea, function = evil.same);
             create table evil.notes as select 666 as id, '{b}'::name as owner, 'evil'::text as note;
             grant select on evil.notes to public;"
        ),
    )
    .await;
    let owners = "select string_agg(distinct owner, ' ') from app.notes";
    for what in [
        format!("select set_config('role', '{b}', false)"),
        "select set_config('search_path', 'evil, app, pg_catalog', false)".to_owned(),
        "select set_config('row_security', 'off', false)".to_owned(),
        "select set_config('statement_timeout', '60000', false)".to_owned(),
        "select set_config('default_transaction_isolation', 'serializable', false)".to_owned(),
        "prepare key as select 1".to_owned(),
        "prepare watch as select 1".to_owned(),
        "prepare s1 as select 1".to_owned(),
        "declare notes cursor with hold for select 1".to_owned(),
        "select pg_advisory_lock(4711)".to_owned(),
        "listen gossip".to_owned(),
    ] {
        let text = format!("select app.leave($leave${what}$leave$)");
        assert_eq!(tenant.text(&first, "a", &text).await, "left", "{what}");
        for (pool, key) in [(&second, "b"), (&second, "a"), (&first, "b")] {
            assert_eq!(tenant.text(pool, key, owners).await, tenant.role(key), "{what}");
            assert_eq!(tenant.text(pool, key, "select current_user").await, tenant.role(key), "{what}");
        }
        let dead = by(&tenant.ask("a", "select 1", &[Int4]), "unknown", "unknown");
        assert_eq!(name(&second.read(dead, usize::MAX).await), "DeadKey", "{what}");
    }
    // Of a table that hides another one nothing can be left: transactions are read-only.
    for refused in ["create temp table notes (id int)", "create temp view notes as select 1"] {
        let text = format!("select app.leave($leave${refused}$leave$)");
        match first.read(tenant.ask("a", &text, &[Text]), usize::MAX).await {
            Err(Failure::Internal(cause)) => {
                assert_eq!(cause.sqlstate.as_deref(), Some("25006"), "{refused}")
            }
            other => panic!("{refused}: {other:?}"),
        }
    }
    for pool in [&first, &second] {
        assert_eq!(pool.counters().n_connects(), (1, 0), "nothing of it cost a connection");
    }
}

/// More callers than sessions, of two keys and two replicas, each with its own marker. Seen to fail with statements that
/// have names.
#[tokio::test]
async fn callers_that_share_sessions_get_their_own_rows() {
    let server = Server::with_pooler(&[], 2).await;
    let tenant = Tenant::found(&server, "wire_crowd").await;
    let pools = [tenant.pool_as(tenant.login.clone(), 4), tenant.pool_as(tenant.login.clone(), 4)];
    let asking = (0..400_usize).map(|number| {
        let (key, pool) = (["a", "b"][number % 2], &pools[number / 2 % 2]);
        let text = format!("select {number}, owner, note from app.notes order by id");
        let (ask, tenant) = (tenant.ask(key, &text, &[Int4, Text, Text]), &tenant);
        async move {
            let page = pool.read(ask, usize::MAX).await.expect("an answer");
            let marker = format!("{{\"0\":{number},\"1\":\"{}\"", tenant.role(key));
            assert_eq!(utf8(&page).matches(&marker).count(), 50, "{}", utf8(&page));
        }
    });
    // As many as wait, and no more.
    futures_util::future::join_all(asking).await;
}

#[tokio::test]
async fn a_postgresql_that_is_killed_behind_its_pooler_comes_back() {
    let (mut server, tenant, [pool, _]) = two_replicas("wire_pooler_killed").await;
    server.kill().await;
    let answer = pool.read(tenant.ask("a", "select 1", &[Int4]), usize::MAX).await;
    assert!(["Unavailable", "NoConnection"].contains(&name(&answer).as_str()), "{answer:?}");
    server.start_again().await;
    until("an answer", async || pool.read(tenant.ask("a", "select 1", &[Int4]), usize::MAX).await.ok()).await;
    assert_eq!(tenant.text(&pool, "b", "select current_user").await, tenant.role("b"));
}
