create schema c;
create table c.accounts (id integer primary key, balance integer not null check (0 <= balance));
insert into c.accounts values (1, 100), (2, 0);
create table c.secrets (word text);
insert into c.secrets values ('hidden');
create table c.owed (id integer primary key, account integer not null references c.accounts deferrable initially deferred);
create table c.notes (id bigint generated always as identity primary key, n integer);
create type c.mood as enum ('sad', 'happy');
create type c.spot as (x integer, label text);
create domain c.small as integer check (value < 100);

create function c.scalar(a integer, b integer) returns bigint language sql as 'select a::bigint + b';
create function c.pairs(n integer) returns table (i integer, square bigint) language sql as
    'select g, g::bigint * g from pg_catalog.generate_series(1, n) g';
create function c.listed(n integer) returns setof text language sql as
    'select ''r'' || g from pg_catalog.generate_series(1, n) g';
create function c.split(whole text, out head text, out tail text) language sql as
    'select pg_catalog.left(whole, 1), pg_catalog.substr(whole, 2)';
create function c.both(inout a integer, inout b text) language sql as 'select a + 1, b || ''!''';
create function c.defaults(a integer default 7, b text default 'x', c integer[] default '{1,2}') returns text language sql as
    'select a || b || c::text';
create function c.whole(id integer) returns c.spot language sql as 'select row(id, ''s'' || id)::c.spot';
create function c.one_of(wanted c.mood) returns c.mood language sql as 'select wanted';
create function c.nothing(n integer) returns void language plpgsql as
    'begin insert into c.notes (n) values (n); end';
create function c.strict(a integer) returns integer language sql strict as 'select a + 1';
create function c.kinds(
    p_big bigint, p_exact numeric, p_flag boolean, p_day date, p_moment timestamptz, p_id uuid,
    p_bytes bytea, p_doc jsonb, p_raw json, p_words text[], p_spot c.spot, p_spots c.spot[],
    p_mood c.mood, p_small c.small, p_span interval, p_range int4range)
    returns table (
    big bigint, exact numeric, flag boolean, day date, moment timestamptz, id uuid,
    bytes bytea, doc jsonb, raw json, words text[], spot c.spot, spots c.spot[],
    mood c.mood, small c.small, span interval, range int4range)
    language sql as
    'select p_big, p_exact, p_flag, p_day, p_moment, p_id, p_bytes, p_doc, p_raw, p_words, p_spot, p_spots, p_mood, p_small, p_span, p_range';

-- all or nothing
create procedure c.transfer(source integer, target integer, amount integer, inout done integer default 0) language plpgsql as $$
begin
    update c.accounts set balance = balance - amount where id = source;
    update c.accounts set balance = balance + amount where id = target;
    if not found then
        raise exception 'there is no account %', target using errcode = 'RG404';
    end if;
    done := amount;
end $$;
-- commits, undoes, and then fails if it is told to
create procedure c.halves(n integer, fails boolean default false) language plpgsql as $$
begin
    insert into c.notes (n) values (n);
    commit;
    insert into c.notes (n) values (n + 1000);
    rollback;
    insert into c.notes (n) values (n + 2000);
    if fails then
        raise exception 'half of it stands' using errcode = 'RG500';
    end if;
end $$;
create procedure c.counted(n integer, out total bigint, out last text) language plpgsql as $$
begin
    total := n * 2;
    last := 'n' || n;
end $$;
create function c.who() returns table (me text, login text, pid integer) language sql as
    'select current_user::text, session_user::text, pg_catalog.pg_backend_pid()';
create function c.raises(state text, message text) returns void language plpgsql as $$
begin
    raise exception '%', message using errcode = state, detail = 'a detail', hint = 'a hint';
end $$;
create function c.breaks(how text) returns integer language plpgsql as $$
begin
    case how
        when 'zero' then return 1 / 0;
        when 'cast' then return 'secret'::integer;
        when 'check' then insert into c.accounts values (3, -1);
        when 'unique' then insert into c.accounts values (1, 1);
        when 'foreign' then insert into c.owed values (1, 99); set constraints all immediate;
        when 'null' then insert into c.accounts values (3, null);
        when 'denied' then perform 1 from c.secrets;
        when 'absent' then perform 1 from c.no_such_table;
        when 'commit' then commit;
        when 'serial' then raise exception 'no' using errcode = '40001';
        when 'stale' then raise exception 'a secret' using errcode = 'DL409';
        when 'other' then raise exception 'no' using errcode = '08006';
        else return 1;
    end case;
    return 0;
end $$;
create function c.sleeps(seconds double precision) returns integer language sql as
    'select 1 from (select pg_catalog.pg_sleep(seconds)) s';
-- traps everything that can be trapped, and does not look whether its client is there
create function c.stubborn() returns integer language plpgsql as $$
begin
    perform pg_catalog.set_config('client_connection_check_interval', '0', false);
    loop
        begin
            perform pg_catalog.pg_sleep(0.05);
        exception when query_canceled or others then
            null;
        end;
    end loop;
end $$;
-- leaves in its session what must not reach the next call
create function c.leave(mark text, zone boolean default false) returns void language plpgsql as $$
begin
    perform pg_catalog.set_config('rowgate.mark', mark, false), pg_catalog.set_config('work_mem', '77kB', false),
            pg_catalog.set_config('search_path', 'c', false),
            pg_catalog.set_config('statement_timeout', '0', false), pg_catalog.pg_advisory_lock(4711);
    begin
        execute 'create temporary table left_behind (n integer)';
    exception when insufficient_privilege then null;
    end;
    if zone then
        perform pg_catalog.set_config('TimeZone', 'Asia/Tokyo', false);
    end if;
    execute 'prepare left_statement as select 1';
    execute 'listen left_channel';
    begin
        execute 'declare left_cursor cursor with hold for select 1';
    exception when others then null;
    end;
end $$;
create function c.found() returns table (what text, value text) language plpgsql as $$
begin
    return query select 'mark', pg_catalog.current_setting('rowgate.mark', true);
    return query select s.name, s.setting from pg_catalog.pg_settings s
        where s.name in ('work_mem', 'TimeZone', 'search_path', 'statement_timeout') order by 1;
    return query select 'role', pg_catalog.current_setting('role');
    return query select 'locks', pg_catalog.count(*)::text from pg_catalog.pg_locks l
        where l.locktype = 'advisory' and l.pid = pg_catalog.pg_backend_pid();
    return query select 'statements', pg_catalog.count(*)::text from pg_catalog.pg_prepared_statements where name <> '';
    return query select 'channels', pg_catalog.count(*)::text from pg_catalog.pg_listening_channels();
    return query select 'cursors', pg_catalog.count(*)::text from pg_catalog.pg_cursors where name = 'left_cursor';
    return query select 'tables', pg_catalog.count(*)::text from pg_catalog.pg_class
        where relname = 'left_behind' and relnamespace = pg_catalog.pg_my_temp_schema();
end $$;
create function c.grown(n integer, width integer) returns setof text language sql as
    'select pg_catalog.repeat(''x'', width) from pg_catalog.generate_series(1, n)';
-- runs a statement as whoever it is, and says what came of it
create function c.escape(how text) returns table (me text, outcome text) language plpgsql as $$
declare
    n bigint;
begin
    begin
        execute how;
        outcome := 'done';
    exception when others then
        outcome := sqlstate;
    end;
    me := current_user;
    return next;
    begin
        select pg_catalog.count(*) into n from c.secrets;
        outcome := n || ' secrets';
    exception when others then
        outcome := sqlstate;
    end;
    me := current_user;
    return next;
end $$;
create function c.peek(query text) returns text language plpgsql as $$
declare
    found text;
begin
    execute query into found;
    return found;
exception when others then
    return sqlstate;
end $$;
-- waits at a gate that the test holds
create function c.gate(n integer) returns integer language plpgsql as $$
begin
    insert into c.notes (n) values (n);
    perform pg_catalog.pg_advisory_xact_lock_shared(4712);
    return n;
end $$;
create function c.big(n integer, width integer default 10000) returns setof text language plpgsql as $$
begin
    insert into c.notes (n) values (n);
    return query select pg_catalog.repeat('x', width) from pg_catalog.generate_series(1, n);
end $$;
create function c.deferred(account integer) returns integer language plpgsql as $$
begin
    insert into c.owed values (account, account);
    return account;
end $$;
create function c.looks(n integer) returns integer language sql immutable as 'select 10 / n';
