//! What one exchange leaves in its session does not matter to the next.

use rowgate_pg::wire::{Failure, Sessions};
use rowgate_sql::shape::Encoding::{Int4, Int8, Quoted, Text, TimestampTz};
use rowgate_tests::servers::postgres::{execute, shared};

use super::fixture::{Tenant, by, name, utf8};

#[tokio::test]
async fn each_key_is_its_own_role_on_one_connection() {
    let tenant = Tenant::found(shared().await, "wire_switch").await;
    let pool = tenant.pool();
    let pid = tenant.text(&pool, "a", "select pg_backend_pid()").await;
    for round in 0..20 {
        for key in ["a", "b", "b", "a"] {
            let role = tenant.role(key);
            assert_eq!(tenant.text(&pool, key, "select current_user").await, role);
            let owners = "select string_agg(distinct owner, ' ') from app.notes";
            assert_eq!(tenant.text(&pool, key, owners).await, role, "round {round}");
            // A role that leaked would be refused `dl` and replaced by a new connection.
            assert_eq!(tenant.text(&pool, key, "select pg_backend_pid()").await, pid);
        }
    }
}

#[tokio::test]
async fn a_transaction_is_read_only_and_sees_row_level_security() {
    let mut tenant = Tenant::found(shared().await, "wire_settings").await;
    execute(&mut tenant.superuser, "create sequence app.counter; grant all on app.counter to public").await;
    let pool = tenant.pool();
    for (setting, value) in [
        ("transaction_read_only", "on"),
        ("row_security", "on"),
        ("search_path", "pg_catalog, pg_temp"),
        ("statement_timeout", "30s"),
        ("TimeZone", "UTC"),
        ("DateStyle", "ISO, MDY"),
        ("IntervalStyle", "iso_8601"),
        ("bytea_output", "hex"),
        ("extra_float_digits", "1"),
        ("client_encoding", "UTF8"),
        ("application_name", "rowgate"),
    ] {
        let text = format!("select current_setting('{setting}')");
        assert_eq!(tenant.text(&pool, "a", &text).await, value, "{setting}");
    }
    match pool.read(tenant.ask("a", "select nextval('app.counter')", &[Int8]), usize::MAX).await {
        Err(Failure::Internal(cause)) => assert_eq!(cause.sqlstate.as_deref(), Some("25006")),
        other => panic!("{other:?}"),
    }
}

/// Seen to fail with a session that is used on after it has reported another setting.
#[tokio::test]
async fn settings_that_tenant_code_left_behind_do_not_matter() {
    let mut tenant = Tenant::found(shared().await, "wire_poison").await;
    execute(
        &mut tenant.superuser,
        "create schema evil;
         grant usage on schema evil to public;
         create function evil.same(bytea, bytea) returns boolean language sql return true;
         create operator evil.= (leftarg = bytea, rightarg = bytea, function = evil.same);
         create function evil.now() returns timestamptz language sql return 'infinity'::timestamptz;
         create table app.values as select '2024-01-31 10:00:00.5+00'::timestamptz as at, 'P1DT2H'::interval as span,
            '\\xff'::bytea as bytes, 0.1::float8 + 0.2::float8 as number, 'Zoë'::text as name;
         grant select on app.values to public;
         create function app.poison() returns text language plpgsql as $$
         begin
            perform set_config('search_path', 'evil, pg_catalog', false);
            perform set_config('bytea_output', 'escape', false);
            perform set_config('extra_float_digits', '-9', false);
            perform set_config('quote_all_identifiers', 'on', false);
            perform set_config('row_security', 'off', false);
            perform set_config('transaction_read_only', 'on', false);
            perform set_config('default_transaction_isolation', 'serializable', false);
            return pg_backend_pid();
         end $$;",
    )
    .await;
    let pool = tenant.pool();
    let columns = [TimestampTz, Quoted, Quoted, Quoted, Quoted, Text];
    let ask = tenant.ask("a", "select at, at, span, bytes, number, name from app.values", &columns);
    let before = utf8(&pool.read(ask.clone(), usize::MAX).await.expect("an answer")).to_owned();
    assert_eq!(
        before,
        r#"{"0":"2024-01-31T10:00:00.5Z","1":"2024-01-31 10:00:00.5+00","2":"P1DT2H","3":"\\xff","4":"0.30000000000000004","5":"Zoë"}"#
    );
    let pid = tenant.text(&pool, "a", "select app.poison()").await;
    assert_eq!(utf8(&pool.read(ask.clone(), usize::MAX).await.expect("an answer")), before);
    let unknown = by(&tenant.ask("a", "select 1", &[Int4]), "unknown", "unknown");
    assert_eq!(name(&pool.read(unknown, usize::MAX).await), "DeadKey");
    let owners = "select string_agg(distinct owner, ' ') from app.notes";
    assert_eq!(tenant.text(&pool, "b", owners).await, tenant.role("b"));
    assert_eq!(tenant.text(&pool, "b", "select pg_backend_pid()").await, pid, "all of this in one session");

    // What PostgreSQL reports ends the session; behind a pooler it is set anew.
    for poison in [
        "set_config('TimeZone', 'Asia/Tokyo', false)",
        "set_config('DateStyle', 'SQL, DMY', false)",
        "set_config('IntervalStyle', 'sql_standard', false)",
        "set_config('client_encoding', 'LATIN1', false)",
        "set_config('standard_conforming_strings', 'off', false)",
    ] {
        let pid = tenant.text(&pool, "a", &format!("select pg_backend_pid() from {poison}")).await;
        assert_eq!(utf8(&pool.read(ask.clone(), usize::MAX).await.expect("an answer")), before, "{poison}");
        let is_same = tenant.text(&pool, "a", "select pg_backend_pid()").await == pid;
        assert_eq!(is_same, tenant.sessions == Sessions::Pooled, "{poison}");
    }
}

#[tokio::test]
async fn a_role_or_statement_that_tenant_code_changed_ends_the_connection_and_not_the_question() {
    let mut tenant = Tenant::found(shared().await, "wire_spoil").await;
    let b = tenant.role("b");
    execute(
        &mut tenant.superuser,
        &format!(
            "create function app.become() returns text language plpgsql as $$
             begin perform set_config('role', '{b}', false); return pg_backend_pid(); end $$;
             create function app.forget() returns text language plpgsql as $$
             begin execute 'deallocate all'; return pg_backend_pid(); end $$;"
        ),
    )
    .await;
    let pool = tenant.pool();
    for spoil in ["select app.become()", "select app.forget()"] {
        let pid = tenant.text(&pool, "a", spoil).await;
        assert_eq!(tenant.text(&pool, "a", "select current_user").await, tenant.role("a"), "{spoil}");
        // A pooler's session would be met again: there each batch begins as the login, and names nothing.
        let is_same = tenant.text(&pool, "a", "select pg_backend_pid()").await == pid;
        assert_eq!(is_same, tenant.sessions == Sessions::Pooled, "{spoil}");
    }
}
