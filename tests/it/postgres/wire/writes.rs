//! A write happens as the role and with the tables that it was made for, and at most once.

use std::sync::Arc;

use rowgate_pg::catalog;
use rowgate_pg::wire::Ask;
use rowgate_sql::shape::Encoding::Int4;
use rowgate_tests::servers::postgres::{execute, rows, shared};

use super::fixture::{Tenant, name};

async fn found(name: &'static str) -> Tenant {
    let mut tenant = Tenant::found(shared().await, name).await;
    execute(
        &mut tenant.superuser,
        "create table app.written (id int primary key, who name not null default current_user);
         create table app.late (id int primary key, other int references app.late deferrable initially deferred);
         grant insert, select on app.written, app.late to public;",
    )
    .await;
    tenant
}

fn insert(tenant: &Tenant, key: &str, id: i32) -> Ask {
    let text = format!("insert into app.written (id) values ({id}) returning id");
    tenant.ask(key, &text, &[Int4])
}

async fn written(tenant: &mut Tenant) -> Vec<String> {
    let rows =
        rows(&mut tenant.superuser, "select id || ' ' || who as it from app.written order by id").await;
    rows.iter().map(|row| row["it"].as_str().expect("a text").to_owned()).collect()
}

/// Seen to fail with a key statement that does not compare the role.
#[tokio::test]
async fn a_write_for_another_role_than_the_keys_is_not_done() {
    let mut tenant = found("wire_write_role").await;
    let pool = tenant.pool();
    for _first_and_prepared in 0..2 {
        let ask = Ask { role: tenant.role("b"), ..insert(&tenant, "a", 1) };
        assert_eq!(name(&pool.write(ask).await), "DeadKey");
    }
    assert!(written(&mut tenant).await.is_empty());
    let outcome = pool.write(insert(&tenant, "a", 2)).await.expect("an answer");
    assert_eq!(outcome.n_affected, 1);
    let a = tenant.role("a");
    assert_eq!(written(&mut tenant).await, [format!("2 {a}")]);
}

/// Seen to fail with a guard that gives a row where it should raise.
#[tokio::test]
async fn a_write_for_other_tables_is_not_done() {
    let mut tenant = found("wire_write_guard").await;
    let pool = tenant.pool();
    let (_, now) = catalog::load(&mut tenant.superuser).await.expect("a catalog");
    let watched = |change: i64| {
        let mut watched = now.clone();
        watched.fingerprint ^= change;
        Some(Arc::new(watched))
    };
    for _first_and_prepared in 0..2 {
        let ask = Ask { watched: watched(1), ..insert(&tenant, "a", 1) };
        assert_eq!(name(&pool.write(ask).await), "Changed");
    }
    assert!(written(&mut tenant).await.is_empty());
    let ask = Ask { watched: watched(0), ..insert(&tenant, "a", 2) };
    assert_eq!(name(&pool.write(ask).await), "Page");
}

/// Seen to fail with a write that is sent along with its description.
#[tokio::test]
async fn a_write_that_would_give_back_other_types_is_not_done() {
    let mut tenant = found("wire_write_types").await;
    let (pool, used) = (tenant.pool(), tenant.pool());
    assert_eq!(name(&used.write(insert(&tenant, "a", 1)).await), "Page");
    // read back as text, and, in the second round, not to be cast at all
    for change in ["type text", "type point using point(1, 1)"] {
        execute(
            &mut tenant.superuser,
            &format!("alter table app.written drop constraint if exists written_pkey, alter id {change}"),
        )
        .await;
        for pool in [&pool, &used] {
            assert_eq!(name(&pool.write(insert(&tenant, "a", 2)).await), "Changed", "{change}");
        }
        assert_eq!(rows(&mut tenant.superuser, "select id::text from app.written").await.len(), 1);
    }
    execute(&mut tenant.superuser, "alter table app.written alter id type int using 1").await;
    for pool in [&pool, &used] {
        assert_eq!(name(&pool.write(insert(&tenant, "a", 3)).await), "Page");
    }
}

#[tokio::test]
async fn a_write_that_fails_when_it_is_committed_is_told_and_was_not_done() {
    let mut tenant = found("wire_write_commit").await;
    let pool = tenant.pool();
    let text = "insert into app.late values (1, 9) returning id";
    let ask = tenant.ask("a", text, &[Int4]);
    let pid = tenant.text(&pool, "a", "select pg_backend_pid()").await;
    assert_eq!(name(&pool.write(ask).await), "Violation");
    assert_eq!(
        tenant.text(&pool, "a", "select pg_backend_pid()").await,
        pid,
        "the session is as good as before"
    );
    assert!(rows(&mut tenant.superuser, "select 1 from app.late").await.is_empty());
    assert_eq!(name(&pool.write(insert(&tenant, "b", 1)).await), "Page");
}

/// Seen to fail without a look at the connection before a write is sent.
#[tokio::test]
async fn a_connection_that_was_ended_while_idle_loses_no_write() {
    let mut tenant = found("wire_write_idle").await;
    let pool = tenant.pool();
    for id in 1..=5 {
        let pid = tenant.text(&pool, "a", "select pg_backend_pid()").await;
        execute(&mut tenant.superuser, &format!("select pg_terminate_backend({pid}, 10000)")).await;
        assert_eq!(name(&pool.write(insert(&tenant, "a", id)).await), "Page");
    }
    assert_eq!(written(&mut tenant).await.len(), 5);
}
