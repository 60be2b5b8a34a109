//! What the hostile tenant may do, and does at once.

pub(super) fn count() -> usize {
    DONE.len() + IN_REQUESTS.len()
}

/// As the owner.
pub(super) const DONE: &[&str] = &[
    // what all tenants share, and may be looked at or written to
    "comment on database acme is 'x'",
    "do $$ begin execute format('comment on database acme is %L', repeat('x', 20000000)); end $$",
    "do $$ begin for i in 1..500 loop
        execute 'alter database acme set work_mem = ''' || i + 64 || 'kB'''; end loop; end $$",
    // 5 MB, of which each pass of every tenant could read all
    "do $$ begin execute format('alter database acme set temp_tablespaces = %L', repeat('x', 5000000)); end $$",
    "do $$ begin for i in 1..300 loop
        execute 'grant connect on database acme to {beta_owner}'; execute 'revoke connect on database acme from {beta_owner}';
        end loop; end $$",
    "grant connect on database acme to public",
    "grant select on app.hidden to rowgate_operator, rowgate_dataplane, {beta_owner}, {beta_auth}",
    "do $$ begin for i in 1..500 loop perform lo_create(i + 1000000);
        execute 'grant select on large object ' || i + 1000000 || ' to {beta_owner}'; end loop; end $$",
    "alter default privileges grant all on tables to public",
    // catalogs of its own, and names of ours there
    "do $$ begin for i in 1..400 loop execute 'create table public.t' || i || ' (i int)'; end loop; end $$",
    "create type public.pg_snapshot as (a int)",
    "create type public.entity_type_of_a_very_long_name_that_postgresql_cuts_after_63_bytes as enum ('a')",
    "do $$ begin execute 'create table public.wide (' ||
        (select string_agg('c' || i || ' int', ', ') from generate_series(1, 1600) i) || ')'; end $$",
    "create collation app.c (provider = libc, locale = 'C')",
    "create conversion app.v for 'UTF8' to 'LATIN1' from utf8_to_iso8859_1",
    "create text search dictionary app.d (template = simple)",
    "create statistics app.s on id, region from app.notes",
    "create rule r as on insert to app.hidden do also notify rowgate",
    "set client_min_messages = error; create publication p for table app.hidden",
    "vacuum full pg_class",
    "reindex system acme",
    "analyze pg_class",
    "alter database acme refresh collation version",
    // for PostgreSQL's own workers: an index that takes all their time
    "create function app.slow(int) returns int immutable language plpgsql as
        $$ begin if session_user <> current_user then perform pg_sleep(3600); end if; return $1; end $$;
     create table app.lazy (i int); create index on app.lazy (app.slow(i)); insert into app.lazy select generate_series(1, 100)",
    "alter table app.hidden set (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)",
    // time, memory, disk
    "select strpos(repeat('a', 100000), 'b' || repeat('a', 20000))",
    "select count(*) from (select i, random() r from generate_series(1, 300000) i order by r) s",
    "set max_parallel_workers_per_gather = 1024; set debug_parallel_query = on; select count(*) from pg_class",
    "do $$ begin for i in 1..2000 loop begin perform lo_create(0); exception when others then null; end; end loop; end $$",
    "create unlogged table app.filled as select repeat(md5(i::text), 10) from generate_series(1, 50000) i",
    "create temp table filled as select i from generate_series(1, 100000) i",
    "set debug_print_plan = on; select 1",
    "do $$ begin for i in 1..200 loop raise log '%', repeat('x', 1000); end loop; end $$",
    // words to others, and what it learns of them
    "do $$ begin for i in 1..1000 loop perform pg_notify('rowgate', repeat('x', 7000) || i); end loop; end $$",
    "select count(*) from pg_stat_database where datname = 'beta'",
    "select count(*) from pg_db_role_setting",
    "select count(*) from pg_locks",
    "select pg_tablespace_size('pg_default')",
    "select pg_current_wal_lsn()",
    "select pg_export_snapshot()",
    "alter database acme reset all",
    // its login
    "alter role {owner} set work_mem = '64kB'",
    "alter role {owner} set search_path = app, pg_catalog",
    "alter role {owner} password 'x'",
    "alter role {owner} password 'SCRAM-SHA-256$200000:c2FsdHNhbHRzYWx0c2FsdA==$\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='",
];

/// By a trigger in a request: what becomes of it where the key is `datalake_user`, and where it has a role of its own.
pub(super) const IN_REQUESTS: &[(&str, &str, &str)] = &[
    ("alter role datalake_user set work_mem = '64kB'", "done", "42501"),
    // the request keeps the row of the catalog for so long
    (
        "do $$ begin alter role datalake_user set work_mem = '128kB'; perform pg_sleep(4); end $$",
        "done",
        "42501",
    ),
    ("alter role current_user password 'x'", "done", "done"),
    ("alter role current_user set statement_timeout = 1", "done", "done"),
    ("alter role {auth} password 'x'", "42501", "42501"),
    ("alter database acme set work_mem = '64kB'", "42501", "42501"),
    ("create table public.x ()", "42501", "42501"),
    ("create temp table x ()", "42501", "42501"),
    ("grant datalake_user to {beta_auth}", "42501", "42501"),
    ("select pg_try_advisory_lock(1), pg_try_advisory_lock(2)", "done", "done"),
    ("select pg_notify('rowgate', 'x')", "done", "done"),
    ("select lo_create(0)", "done", "done"),
    (
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = '{beta_auth}'",
        "42501",
        "42501",
    ),
    ("select strpos(repeat('a', 100000), 'b' || repeat('a', 20000))", "done", "done"),
    ("select pg_sleep(0.2)", "done", "done"),
];
