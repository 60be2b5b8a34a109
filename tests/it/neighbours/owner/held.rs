//! What the hostile tenant may do and keep: each in a session of the owner's that stays while the others are served. And how it ends.

pub(super) fn count() -> usize {
    HELD.len() + SHUT.len()
}

pub(super) const HELD: &[&str] = &[
    // rows of catalogs that passes of the operator write
    "begin; alter role {owner} set work_mem = '64kB'; commit; begin; alter role {owner} set work_mem = '128kB'",
    "begin; alter database acme set search_path = app",
    "begin; grant connect on database acme to {beta_auth}",
    "begin; comment on database acme is 'y'",
    "begin; grant select on app.acts to {beta_key}",
    // tables, rows and names
    "begin; lock table app.notes in access exclusive mode",
    "begin; do $$ begin for i in 1..300 loop execute 'create table public.h' || i || ' (i int primary key)'; end loop; end $$",
    "begin; alter table app.hidden add column more int; create schema other",
    "begin; do $$ begin for i in 1..1000 loop
        begin perform dl.fence(i); exit; exception when others then null; end; end loop; end $$",
    "begin; select lo_create(0); do $$ begin for i in 1..300 loop
        begin perform lo_create(0); exception when others then null; end; end loop; end $$",
    // the numbers that Rowgate itself takes in the control database
    "select pg_advisory_lock(8246780186478081125), pg_advisory_lock(1), pg_advisory_lock_shared(2)",
    "select pg_advisory_lock(i) from generate_series(1000, 2000) i",
    // snapshots, cursors, notifications
    "begin isolation level serializable; select count(*) from pg_class",
    "begin isolation level repeatable read; select count(*) from pg_class",
    "declare c cursor with hold for select repeat('x', 1000) from generate_series(1, 10000)",
    "listen rowgate; begin; select 1",
    "begin; notify rowgate, 'x'",
    "begin; select pg_export_snapshot()",
    // sessions
    "set idle_session_timeout = 0; set statement_timeout = 0",
    "set work_mem = '1GB'; create temp table held as select i from generate_series(1, 1000) i",
];

/// Nobody but a superuser gets in any more.
pub(super) const SHUT: &[&str] = &[
    "alter database acme set default_transaction_read_only = on",
    "alter database acme set default_transaction_isolation = serializable",
    "alter database acme set search_path = app, pg_catalog",
    "alter database acme set idle_session_timeout = '1ms'",
    "alter database acme set exit_on_error = on",
    "alter database acme set debug_print_plan = on",
    "alter database acme is_template true",
    "revoke all on database acme from {auth}, {dl}, public",
    "alter database acme set local_preload_libraries = 'absent'",
    "alter database acme connection limit 0",
];
