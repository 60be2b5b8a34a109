//! What PostgreSQL's errors become, and what a connection remembers of its statements.

use rowgate_pg::wire::{Failure, Sessions};
use rowgate_sql::shape::Encoding::{Int4, Int8, Quoted, Text};
use rowgate_sql::text::{Bind, Sql};
use rowgate_tests::servers::postgres::{execute, shared};

use super::fixture::{Tenant, name, utf8};

#[tokio::test]
async fn errors_are_told_apart_and_leave_the_connection_good() {
    let mut tenant = Tenant::found(shared().await, "wire_errors").await;
    execute(
        &mut tenant.superuser,
        "create table app.closed (id int);
         create function app.fail() returns int language plpgsql as $$ begin raise 'secret text'; end $$;",
    )
    .await;
    let pool = tenant.pool();
    let pid = tenant.text(&pool, "a", "select pg_backend_pid()").await;
    for (text, expected) in [
        ("select id from app.closed", "Denied"),
        ("select id from app.absent", "Changed"),
        ("select absent from app.notes", "Changed"),
        ("select 1 / (id - id) from app.notes", "Invalid"),
        ("select 'x'::text::int4", "Invalid"),
        ("select app.fail()", "Internal"),
        ("select 1 from", "Internal"),
        ("select 1", "Page"),
    ] {
        for _first_and_prepared in 0..2 {
            let answer = pool.read(tenant.ask("a", text, &[Int4]), usize::MAX).await;
            assert_eq!(name(&answer), expected, "{text}: {answer:?}");
            if let Err(failure) = answer {
                assert!(!failure.to_string().contains("secret"), "{failure}");
            }
        }
    }
    assert_eq!(tenant.text(&pool, "a", "select pg_backend_pid()").await, pid);
}

#[tokio::test]
async fn a_table_that_changed_under_its_statement_is_told_and_then_read_anew() {
    let mut tenant = Tenant::found(shared().await, "wire_changed").await;
    execute(&mut tenant.superuser, "create table app.t as select 1 as id; grant select on app.t to public")
        .await;
    let pool = tenant.pool();
    let small = tenant.ask("a", "select id from app.t", &[Int4]);
    let big = tenant.ask("a", "select id from app.t", &[Int8]);
    assert_eq!(name(&pool.read(big.clone(), usize::MAX).await), "Changed", "never compiled for this type");
    assert_eq!(utf8(&pool.read(small.clone(), usize::MAX).await.expect("an answer")), r#"{"0":1}"#);
    execute(&mut tenant.superuser, "alter table app.t alter id type bigint").await;
    assert_eq!(name(&pool.read(small.clone(), usize::MAX).await), "Changed", "the cached plan");
    assert_eq!(name(&pool.read(small, usize::MAX).await), "Changed", "the description");
    assert_eq!(utf8(&pool.read(big, usize::MAX).await.expect("an answer")), r#"{"0":1}"#);
    let left = "select coalesce(string_agg(name || ': ' || statement, '; '), '') from pg_prepared_statements where statement like '%app.t'";
    let left = tenant.text(&pool, "a", left).await;
    let kept = if tenant.sessions == Sessions::Own { 1 } else { 0 };
    assert_eq!(left.matches("select id from app.t").count(), kept, "{left}");
}

#[tokio::test]
async fn a_connection_keeps_128_statements_and_each_role_has_its_own() {
    let tenant = Tenant::found(shared().await, "wire_lru").await;
    let pool = tenant.pool();
    let count = "select count(*) from pg_prepared_statements";
    // A pooler's sessions are everybody's, and keep nothing.
    let kept = |number| if tenant.sessions == Sessions::Own { number } else { "0" };
    assert_eq!(tenant.text(&pool, "a", count).await, kept("2"), "the key statement and this one");
    assert_eq!(tenant.text(&pool, "b", count).await, kept("3"), "the same text for another role");
    for number in 0..300 {
        let text = format!("select {number}");
        for key in ["a", "b"] {
            let page = pool.read(tenant.ask(key, &text, &[Int4]), usize::MAX).await.expect("an answer");
            assert_eq!(utf8(&page), format!("{{\"0\":{number}}}"));
        }
    }
    assert_eq!(tenant.text(&pool, "a", count).await, kept("129"));
}

#[tokio::test]
async fn binds_take_and_position_do_what_they_say() {
    let tenant = Tenant::found(shared().await, "wire_page").await;
    let pool = tenant.pool();
    let mut ask = tenant.ask("b", "", &[Int4, Text]);
    let mut sql = Sql::new();
    sql.lit("select id, note from app.notes where id >= ").bind(Bind::text(23, "11"));
    sql.lit(" order by id limit 4");
    let mut shape = (*ask.shape).clone();
    shape.columns[0].label = None;
    shape.position = vec![1, 0];
    (ask.sql, ask.shape) = (sql, shape.into());
    let page = pool.read(ask.clone(), 3).await.expect("an answer");
    assert_eq!(utf8(&page), r#"{"1":"note 5"},{"1":"note 6"},{"1":"note 7"}"#);
    assert!(page.more && page.n_rows == 3);
    assert_eq!(page.last, Some(vec![Some(b"note 7".to_vec()), Some(vec![0, 0, 0, 15])]));
    assert_eq!(page.key.role, tenant.role("b"));

    assert!(!pool.read(ask.clone(), 4).await.expect("an answer").more);
    let mut sql = Sql::new();
    sql.lit("select id, note from app.notes where id = ").bind(Bind::text(23, "eleven"));
    ask.sql = sql;
    match pool.read(ask, 4).await {
        Err(Failure::Invalid(cause)) => assert_eq!(cause.sqlstate.as_deref(), Some("22P02")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_row_beyond_the_limit_is_an_error() {
    let tenant = Tenant::found(shared().await, "wire_huge").await;
    let pool = tenant.pool();
    let huge = pool.read(tenant.ask("a", "select repeat('x', 70000000)", &[Quoted]), usize::MAX).await;
    assert_eq!(name(&huge), "TooLong");
    assert_eq!(name(&pool.read(tenant.ask("a", "select 1", &[Int4]), usize::MAX).await), "Page");
}
