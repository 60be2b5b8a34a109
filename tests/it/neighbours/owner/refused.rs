//! What PostgreSQL, or the parser of the SQL endpoint, does not let the hostile tenant do.

pub(super) fn count() -> usize {
    DENIED.len() + OTHERWISE.len() + AS_SQL.len()
}

/// As the owner: 42501. Names in braces are those of roles.
pub(super) const DENIED: &[&str] = &[
    // roles of its own, and others
    "alter role {owner} connection limit 50",
    "alter role {owner} valid until 'infinity'",
    "alter role {owner} superuser",
    "alter role {owner} replication",
    "alter role datalake_user set work_mem = '64kB'",
    "alter role {beta_owner} set work_mem = '64kB'",
    "comment on role datalake_user is 'x'",
    "grant {owner} to {beta_owner}",
    "create role r",
    "set role {dl}",
    "reassign owned by {dl} to {owner}",
    "drop owned by {beta_owner}",
    // databases
    "create database d",
    "drop database beta",
    "alter database acme rename to omega",
    "alter database acme owner to datalake_user",
    "alter database beta set work_mem = '64kB'",
    "alter database beta connection limit 0",
    "comment on database beta is 'x'",
    "select pg_database_size('beta')",
    "create tablespace t location '/tmp'",
    // settings that only a superuser may give a database or a session
    "alter database acme set session_preload_libraries = 'absent'",
    "alter database acme set log_min_messages = 'debug5'",
    "alter database acme set temp_file_limit = -1",
    "alter database acme set session_replication_role = replica",
    "set session_replication_role = replica",
    "set temp_file_limit = -1",
    "set log_statement = 'all'",
    "set zero_damaged_pages = on",
    "set allow_system_table_mods = on",
    "alter system set work_mem = '1MB'",
    // code that runs as the server, or in everybody's sessions
    "create extension dblink",
    "create extension postgres_fdw",
    "create extension file_fdw",
    "create language plperlu",
    "create function public.f() returns int language c as 'libc', 'exit'",
    "create function public.f() returns int language internal as 'pg_backend_pid'",
    "create event trigger t on ddl_command_start execute function app.act()",
    "create foreign data wrapper w",
    "create access method m type table handler heap_tableam_handler",
    "create operator class o default for type int using btree as operator 1 <",
    "create text search template app.t (lexize = dsimple_lexize)",
    // the log of changes
    "create publication p for all tables",
    "create subscription s connection 'host=127.0.0.1' publication p with (connect = false)",
    "select pg_create_physical_replication_slot('s', true)",
    "select pg_create_logical_replication_slot('s', 'pgoutput')",
    "select pg_replication_origin_create('x')",
    "select pg_logical_emit_message(false, 'a', 'b')",
    "select pg_switch_wal()",
    "select pg_create_restore_point('x')",
    "select pg_backup_start('x')",
    "checkpoint",
    "select pg_promote()",
    // catalogs
    "create table pg_catalog.t ()",
    "create or replace view pg_catalog.pg_roles as select 1",
    "drop view pg_catalog.pg_stat_activity",
    "update pg_database set datconnlimit = 0",
    "update pg_class set relname = 'x'",
    "delete from pg_authid",
    "select rolpassword from pg_authid",
    "begin; lock table pg_class in access exclusive mode",
    "begin; lock table pg_database in share mode",
    "begin; lock table pg_authid in access share mode",
    "begin; reindex table pg_class",
    "reindex table pg_database",
    "cluster pg_class using pg_class_oid_index",
    // sessions, memory, statistics, files
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = '{beta_auth}'",
    "select pg_cancel_backend(pid) from pg_stat_activity where usename = 'rowgate_operator'",
    "select pg_log_backend_memory_contexts(pg_backend_pid())",
    "select * from pg_shmem_allocations",
    "select pg_stat_reset()",
    "select pg_stat_reset_shared('bgwriter')",
    "select pg_reload_conf()",
    "select pg_rotate_logfile()",
    "select * from pg_hba_file_rules",
    "select pg_ls_waldir()",
    "select pg_read_file('postgresql.conf')",
    "select lo_import('/etc/passwd')",
    "select lo_export(1, '/tmp/x')",
    "copy (select 1) to program 'true'",
    "copy (select 1) to '/tmp/x'",
];

/// Refused for another reason.
pub(super) const OTHERWISE: &[(&str, &str)] = &[
    ("drop database acme", "55006"),
    ("alter database acme allow_connections false", "22023"),
    ("alter database acme set tablespace pg_global", "55006"),
    // the server would wait that long with each session
    ("alter database acme set post_auth_delay = 100", "55P02"),
    ("create schema pg_hostile", "42939"),
    ("security label on table app.notes is 'x'", "22023"),
    // without max_prepared_transactions
    ("begin; select lo_create(0); prepare transaction 'x'", "55000"),
    ("set work_mem = '2TB'", "22023"),
];

/// By a key as SQL of its own.
pub(super) const AS_SQL: &[&str] = &[
    "select pg_advisory_lock(1) as a",
    "select pg_notify('a', 'b')::text as a",
    "select pg_sleep(10)::text as a",
    "select strpos(repeat('a', 200000), 'b' || repeat('a', 50000)) as a",
    "select set_config('role', 'none', false) as a",
    "select lo_create(0) as a",
    "select txid_current() as a",
    "select nextval('app.notes_id_seq') as a",
    "select pg_terminate_backend(1) as a",
    "select pg_current_wal_lsn()::text as a",
    "select datname from pg_database",
    "select query from pg_stat_activity",
    "select setconfig from pg_db_role_setting",
    "select id from app.notes for update",
];
