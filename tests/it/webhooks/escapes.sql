function	with x as materialized (select set_config('role','none',true) r) select * from x
function	select pg_catalog.set_config('statement_timeout', '0', false)
function	select "set_config"('role', 'none', true)
function	select SET_CONFIG('search_path', 'dl', false)
function	select current_setting('data_directory')
function	select query_to_xml('select 1', true, true, '')
function	select cursor_to_xml('c', 1, true, true, '')
function	select database_to_xml(true, true, '')
function	select table_to_xml('dl.keys', true, true, '')
function	select ts_stat('select to_tsvector(''a'')')
function	select ts_rewrite('a'::tsquery, 'select ''a''::tsquery, ''b''::tsquery')
function	select pg_sleep(1000)
function	select pg_sleep_for('1 hour')
function	select pg_notify('rowgate', 'x')
function	select pg_advisory_lock(1)
function	select pg_try_advisory_lock_shared(1)
function	select count(pg_advisory_lock(g)) from generate_series(1, 40000) as g
function	select pg_terminate_backend(1)
function	select pg_cancel_backend(1)
function	select pg_read_file('/etc/passwd')
function	select pg_read_binary_file('/etc/passwd')
function	select pg_ls_dir('/')
function	select pg_stat_file('/')
function	select lo_create(0)
function	select lo_from_bytea(0, 'x')
function	select lo_import('/etc/passwd')
function	select lo_export(1, '/tmp/x')
function	select lo_unlink(1)
function	select dblink('dbname=postgres', 'select 1')
function	select nextval('app.s')
function	select setval('app.s', 1)
function	select txid_current()
function	select pg_current_xact_id()
function	select pg_export_snapshot()
function	select pg_logical_emit_message(false, 'a', 'b')
function	select pg_switch_wal()
function	select pg_reload_conf()
function	select pg_stat_reset()
function	select pg_get_userbyid(10)
function	select pg_get_viewdef('app.v')
function	select has_table_privilege('dl.keys', 'select')
function	select to_regclass('dl.keys')
function	select format('%1000000000s', 'x')
function	select array_fill(1, array[100000000])
function	select setseed(0.5)
function	select random()
function	select pg_database_size('postgres')
function	select inet_server_addr()
function	select version()
function	select app.f(1)
function	select regclass('dl.keys')
function	select * from pg_ls_dir('/') as f
function	select * from dblink('dbname=postgres', 'select 1') as t(a int)
syntax	select * from rows from (pg_sleep(1)) as x
length	select repeat('x', 1000000000)
length	select lpad('x', 1000000000)
length	select repeat('x', 10 ^ 9)
attribute	select (0.01::float8).pg_sleep
attribute	select ('data_directory'::text).current_setting
column	select g.pg_sleep from generate_series(1, 1) as g
column	select t.pg_read_file from unnest(array['/etc/passwd']) as t
type	select 'dl.keys'::regclass
type	select cast('pg_sleep' as regproc)
type	select 10::regrole
type	select 10::oid
type	select 'x'::app.domain_with_function
type	select regtype 'text'
operator	select 1 operator(app.+) 2
catalog	select * from pg_authid
catalog	select * from pg_catalog.pg_roles
catalog	select * from "pg_catalog"."pg_database"
catalog	select * from pg_stat_activity
catalog	select rolname from PG_ROLES
catalog	select * from information_schema.role_table_grants
catalog	select * from pg_toast.pg_toast_2619
catalog	select * from pg_temp.t
schema	select * from dl.keys
schema	select * from "dl".webhooks
schema	select * from DL.keys
locking	select * from app.t for update
locking	select * from app.t for no key update skip locked
into	select * into app.copy from app.t
into	select * into temporary copy from app.t
data change	with x as (insert into app.t values (1) returning *) select * from x
data change	with x as (update app.t set a = 1 returning *) select * from x
data change	with x as (delete from app.t returning *) select * from x
statements	select 1; select 2
statements	select 1; commit; drop table app.t
statement	insert into app.t values (1)
statement	drop table app.t
statement	set role none
statement	copy app.t to program 'id'
statement	explain analyze select 1
statement	begin
sample	select * from app.t tablesample system (1)
syntax	table app.t
