-- Which ticks belong to which history, so that an event keeps its id wherever and whenever it is given. docs/decisions/events.md

-- Which ticks belong to which generation: from its first one to that of the next. It outlasts the ticks, so that an event keeps its
-- id as long as anything keeps the event.
create table dl.generations (
    first_tick    bigint primary key,
    generation    integer not null unique
);
insert into dl.generations (first_tick, generation) select min(t.number), t.generation from dl.ticks t group by t.generation;

create function dl.generation_of(tick bigint) returns integer
    language sql stable security definer
    set search_path = pg_catalog
    begin atomic
        select g.generation from dl.generations g where g.first_tick <= tick order by g.first_tick desc limit 1;
    end;

-- Whether a reader goes on exactly here: the tick is of that generation, or all before it was read and the tick before is.
create function dl.holds(generation integer, tick bigint, seq bigint) returns boolean
    language plpgsql volatile security definer
    set search_path = pg_catalog
    as $$
    declare
        newest bigint := (select max(t.number) from dl.ticks t);
    begin
        return (select l.floor from dl.event_log l) < tick
            and (tick <= newest and dl.generation_of(tick) = holds.generation
                or seq = 0 and tick <= newest + 1 and dl.generation_of(tick - 1) = holds.generation);
    end
    $$;

-- Which history this is. A promoted standby and a restored backup go on in another timeline; a copy of the files does not, but its
-- server was started at another time; a database made from a dump has another oid, or is on another system.
create or replace function dl.history() returns text
    language sql stable security definer
    set search_path = pg_catalog
    begin atomic
        select concat_ws('/', (pg_control_system()).system_identifier,
            (select d.oid from pg_database d where d.datname = current_database()),
            left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), extract(epoch from pg_postmaster_start_time()));
    end;
update dl.event_log set history = dl.history();

-- Makes a tick if an event has become visible that the last one does not see, and gives the newest one.
create or replace function dl.tick(out number bigint, out generation integer, out floor bigint)
    language plpgsql volatile security definer
    set search_path = pg_catalog
    as $$
    declare
        log dl.event_log;
        last dl.ticks;
        present pg_snapshot := pg_current_snapshot();
        past dl.event_log.history%type := dl.history();
        is_other boolean := false;
        is_foreign boolean := false;
    begin
        select * into log from dl.event_log;
        select * into last from dl.ticks t order by t.number desc limit 1;
        if log.history <> past or dl.has_news(last.snapshot, present) then
            -- one at a time; what the others made meanwhile is read again
            select * into log from dl.event_log for update;
            select * into last from dl.ticks t order by t.number desc limit 1;
            present := pg_current_snapshot();
            is_other := log.history <> past;
            if is_other then
                is_foreign := split_part(log.history, '/', 1) <> split_part(past, '/', 1)
                    or split_part(log.history, '/', 2) <> split_part(past, '/', 2);
                -- two copies of one database must not come to the same number
                update dl.event_log l set generation = l.generation + 1 + floor(random() * 100000)::integer, history = past returning * into log;
                insert into dl.generations (first_tick, generation) values (last.number + 1, log.generation);
            end if;
            if is_foreign then
                -- its transaction numbers are those of another server: nothing before this tick can be told apart
                with gone as (delete from dl.outbox) select pg_current_snapshot() into present;
                update dl.event_log l set floor = last.number + 1 returning * into log;
            end if;
            if is_other or dl.has_news(last.snapshot, present) then
                -- what a reader knows of outlasts a crash, whatever the server's settings
                if current_setting('synchronous_commit') = 'off' then
                    perform set_config('synchronous_commit', 'local', true);
                end if;
                insert into dl.ticks as t (number, generation, snapshot) values (last.number + 1, log.generation, present)
                    returning * into last;
            end if;
        end if;
        number := last.number;
        generation := last.generation;
        floor := log.floor;
    end
    $$;

-- As before, with the generation: of an event that of its tick, and of the last row that of the position. Without rels: of all
-- tables. Where the log gave events of the page up meanwhile, the last row is missing.
drop function dl.events;
create function dl.events(after_tick bigint, after_seq bigint, rels oid[], ops text[], max_rows integer)
    returns table (tick bigint, seq bigint, generation integer, at timestamptz, rel oid, op "char", cause bigint, image text)
    language plpgsql volatile security definer
    set search_path = pg_catalog
    as $$
    declare
        newest bigint := (select max(t.number) from dl.ticks t);
        before pg_snapshot := (select t.snapshot from dl.ticks t where t.number = after_tick - 1);
        present pg_snapshot;
        taken integer := 0;
        n integer;
    begin
        tick := after_tick;
        seq := after_seq;
        while tick <= newest and taken < max_rows and tick < after_tick + 1000 loop
            select t.snapshot, t.generation into present, generation from dl.ticks t where t.number = tick;
            return query
                select tick, o.seq, generation, o.at, o.rel, o.op, o.cause, o.image::text from (
                    select * from dl.outbox a where a.xid >= pg_snapshot_xmax(before) and a.xid < pg_snapshot_xmax(present)
                    union all
                    select * from dl.outbox a where a.xid = any (array(select pg_snapshot_xip(before)))
                ) o
                where o.seq > events.seq and pg_visible_in_snapshot(o.xid, present)
                    and (rels is null or o.rel = any (rels)) and o.op::text = any (ops)
                order by o.seq limit max_rows - taken;
            get diagnostics n = row_count;
            taken := taken + n;
            -- the caller knows the last row, from which it goes on
            exit when taken = max_rows;
            tick := tick + 1;
            seq := 0;
            before := present;
        end loop;
        generation := dl.generation_of(tick - 1);
        op := null; at := null; rel := null; cause := null; image := null;
        -- a leaf that is emptied is empty for older snapshots too
        if after_tick > (select l.floor from dl.event_log l) then
            return next;
        end if;
    end
    $$;

revoke all on all functions in schema dl from public;
