-- Row-change events: what triggers capture, and the order in which it became visible. docs/decisions/events.md

create sequence dl.outbox_seq;

-- One leaf for each of ten days in turn. All of them are there from the start, so that none can be missing and nothing is ever attached
-- or dropped, for which writers would have to wait: dl.retire empties the leaf of a day that is over.
create table dl.outbox (
    -- days since 1970, modulo 10, by the clock at the statement, in UTC
    slot          smallint not null,
    -- no cache: of two writers of one row the second takes its number after the first has committed
    seq           bigint not null default pg_catalog.nextval('dl.outbox_seq'),
    xid           xid8 not null default pg_catalog.pg_current_xact_id(),
    at            timestamptz not null default pg_catalog.clock_timestamp(),
    -- the table; of a partition its root
    rel           oid not null,
    -- i, u, d, or t: truncate
    op            "char" not null,
    -- the same number in the delete and the insert that an update of the key is
    cause         bigint,
    -- the row: after the change, of a delete before it
    image         json
) partition by list (slot);

do $$
begin
    for slot in 0..9 loop
        execute pg_catalog.format('create table dl.outbox_%s partition of dl.outbox for values in (%s)', slot, slot);
    end loop;
end
$$;
create index on dl.outbox (xid, seq);

-- A tick is what was visible at a time. An event belongs to the first tick whose snapshot sees it, and within a tick events stand by
-- seq. Readers make ticks, so that without readers there are none.
create table dl.ticks (
    number        bigint primary key,
    generation    integer not null,
    snapshot      pg_snapshot not null,
    at            timestamptz not null default pg_catalog.clock_timestamp()
);

create table dl.event_log (
    one           boolean primary key default true check (one),
    -- grows when the server is another one, or went back in time: numbers are given again then
    generation    integer not null default 1,
    history       text not null,
    -- the events of this tick and of those before it are gone
    floor         bigint not null default 0,
    -- events of days before this one are gone
    floor_day     date not null default (pg_catalog.now() at time zone 'UTC')::date
);

-- Which history this is: a promoted standby and a restored copy go on in another timeline.
create function dl.history() returns text
    language sql stable security definer
    set search_path = pg_catalog
    begin atomic
        select (pg_control_system()).system_identifier || '/' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
    end;

insert into dl.event_log (history) values (dl.history());
insert into dl.ticks (number, generation, snapshot) values (0, 1, pg_catalog.pg_current_snapshot());

create function dl.has_news(before pg_snapshot, present pg_snapshot) returns boolean
    language sql stable security definer
    set search_path = pg_catalog
    begin atomic
        select exists (select from dl.outbox o where o.xid >= pg_snapshot_xmax(before) and pg_visible_in_snapshot(o.xid, present))
            or exists (select from dl.outbox o
                where o.xid = any (array(select pg_snapshot_xip(before))) and pg_visible_in_snapshot(o.xid, present));
    end;

-- Makes a tick if an event has become visible that the last one does not see, and gives the newest one.
create function dl.tick(out number bigint, out generation integer, out floor bigint)
    language plpgsql volatile security definer
    set search_path = pg_catalog
    as $$
    declare
        log dl.event_log;
        last dl.ticks;
        present pg_snapshot := pg_current_snapshot();
        past dl.event_log.history%type := dl.history();
    begin
        select * into log from dl.event_log;
        select * into last from dl.ticks t order by t.number desc limit 1;
        if log.history <> past or log.generation <> last.generation or dl.has_news(last.snapshot, present) then
            -- one at a time; what the others made meanwhile is read again
            select * into log from dl.event_log for update;
            if log.history <> past then
                update dl.event_log l set generation = l.generation + 1, history = past returning * into log;
            end if;
            select * into last from dl.ticks t order by t.number desc limit 1;
            present := pg_current_snapshot();
            if log.generation <> last.generation or dl.has_news(last.snapshot, present) then
                insert into dl.ticks as t (number, generation, snapshot) values (last.number + 1, log.generation, present)
                    returning * into last;
            end if;
        end if;
        number := last.number;
        generation := last.generation;
        floor := log.floor;
    end
    $$;

-- Events behind a position, in their order: at most so many, of at most so many ticks. The last row has no op and says where the
-- next page begins. A position is a tick and a seq: all before that tick was read, and of it what stands up to the seq.
create function dl.events(after_tick bigint, after_seq bigint, rels oid[], ops text[], max_rows integer)
    returns table (tick bigint, seq bigint, at timestamptz, rel oid, op "char", cause bigint, image text)
    language plpgsql stable security definer
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
            present := (select t.snapshot from dl.ticks t where t.number = tick);
            return query
                select tick, o.seq, o.at, o.rel, o.op, o.cause, o.image::text from (
                    select * from dl.outbox a where a.xid >= pg_snapshot_xmax(before) and a.xid < pg_snapshot_xmax(present)
                    union all
                    select * from dl.outbox a where a.xid = any (array(select pg_snapshot_xip(before)))
                ) o
                where o.seq > events.seq and pg_visible_in_snapshot(o.xid, present)
                    and o.rel = any (rels) and o.op::text = any (ops)
                order by o.seq limit max_rows - taken;
            get diagnostics n = row_count;
            taken := taken + n;
            -- the caller knows the last row, from which it goes on
            exit when taken = max_rows;
            tick := tick + 1;
            seq := 0;
            before := present;
        end loop;
        op := null; at := null; rel := null; cause := null; image := null;
        return next;
    end
    $$;

create function dl.key_of(image json, key_columns text[]) returns text
    language sql immutable security invoker
    set search_path = pg_catalog
    begin atomic
        select '[' || string_agg((image -> k.name)::text, ',' order by k.n) || ']' from unnest(key_columns) with ordinality k(name, n);
    end;

-- Runs for each statement. Its arguments are the columns of the primary key.
create function dl.capture() returns trigger
    language plpgsql security definer
    set search_path = pg_catalog set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'iso_8601' set bytea_output = 'hex'
    set extra_float_digits = '1'
    as $$
    -- a column of the table may be called like one of these
    #variable_conflict use_variable
    declare
        root oid := coalesce(pg_partition_root(tg_relid), tg_relid);
        today smallint := (extract(epoch from clock_timestamp())::bigint / 86400 % 10)::smallint;
    begin
        case tg_op
        when 'INSERT' then
            insert into dl.outbox (slot, rel, op, image) select today, root, 'i', row_to_json(r.*) from new_rows r;
        when 'DELETE' then
            insert into dl.outbox (slot, rel, op, image) select today, root, 'd', row_to_json(r.*) from old_rows r;
        when 'TRUNCATE' then
            -- of a partitioned table it runs for each partition as well
            insert into dl.outbox (slot, rel, op) select today, root, 't'
            where 't' is distinct from (
                select o.op from dl.outbox o where o.xid = pg_current_xact_id() and o.rel = root order by o.seq desc limit 1
            );
        else
            if not exists (
                select dl.key_of(row_to_json(r.*), tg_argv) from new_rows r except all select dl.key_of(row_to_json(r.*), tg_argv) from old_rows r
            ) then
                insert into dl.outbox (slot, rel, op, image) select today, root, 'u', row_to_json(r.*) from new_rows r;
                return null;
            end if;
            -- old and new rows stand in one order; deletes come first, as another row may take the key
            with pairs as materialized (
                select o.image as old_image, n.image as new_image, nextval('dl.outbox_seq') as cause,
                    dl.key_of(o.image, tg_argv) <> dl.key_of(n.image, tg_argv) as is_moved
                from (select row_number() over () as i, row_to_json(r.*) as image from old_rows r) o
                join (select row_number() over () as i, row_to_json(r.*) as image from new_rows r) n using (i)
            ), events as (
                select 1 as step, 'd'::"char" as op, cause, old_image as image from pairs where is_moved
                union all select 2, 'i', cause, new_image from pairs where is_moved
                union all select 2, 'u', null, new_image from pairs where not is_moved
            )
            insert into dl.outbox (slot, rel, op, cause, image) select today, root, e.op, e.cause, e.image from events e order by e.step;
        end case;
        return null;
    end
    $$;

-- Which of the rows, stored as JSON, the policies of a table let the current role see: their numbers, from 1 on.
create function dl.permitted(rel oid, images json) returns setof integer
    language plpgsql stable security invoker
    set search_path = pg_catalog
    as $$
    declare
        allows text;
        restricts text;
        needed text[];
    begin
        if not row_security_active(rel) then
            return;
        end if;
        select string_agg('(' || pg_get_expr(p.polqual, p.polrelid) || ')', ' or ') filter (where p.polpermissive),
            string_agg('(' || pg_get_expr(p.polqual, p.polrelid) || ')', ' and ') filter (where not p.polpermissive)
        into allows, restricts
        from pg_policy p
        where p.polrelid = rel and p.polcmd in ('r', '*') and p.polqual is not null
            and (p.polroles = '{0}' or exists (select from unnest(p.polroles) r where r <> 0 and pg_has_role(current_user, r, 'usage')));
        if allows is null then
            return;
        end if;
        -- a column that the stored row lacks would count as NULL, and could let a policy pass
        select array_agg(distinct a.attname) into needed
        from pg_policy p
        join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = p.oid and d.refclassid = 'pg_class'::regclass
            and d.refobjid = rel and d.deptype = 'n'
        join pg_attribute a on a.attrelid = rel and a.attnum > 0 and not a.attisdropped and d.refobjsubid in (0, a.attnum)
        where p.polrelid = rel;
        return query execute format(
            'select e.n::integer from json_array_elements($1) with ordinality e(image, n)
             where not exists (select from unnest($2) k where e.image -> k is null)
                 and exists (select from json_populate_record(null::%s, e.image) as %I where (%s)%s)',
            rel::regclass, (select c.relname from pg_class c where c.oid = rel), allows, ' and ' || restricts)
            using images, coalesce(needed, '{}');
    end
    $$;

-- Empties the days that are over: the floor is 7 days ago. Runs with each pass of the reconciler.
create function dl.retire() returns void
    language plpgsql volatile security definer
    set search_path = pg_catalog
    as $$
    declare
        log dl.event_log;
        today date := (now() at time zone 'UTC')::date;
        -- of a writer that began eight days ago at most
        first date := today - 8;
    begin
        select * into log from dl.event_log for update;
        if first <= log.floor_day then
            return;
        end if;
        -- where no reconciler ran for longer, a slot of before holds rows of today
        if log.floor_day < today - 9 then
            delete from dl.outbox o where o.at < first::timestamp at time zone 'UTC';
        else
            for n in 1..first - log.floor_day loop
                execute format('truncate only dl.outbox_%s', (first - n - date '1970-01-01') % 10);
            end loop;
        end if;
        update dl.event_log l set floor_day = first,
            floor = greatest(l.floor, coalesce((select max(t.number) from dl.ticks t where t.at < now() - interval '7 days'), 0));
        delete from dl.ticks t using dl.event_log l where t.number < l.floor;
    end
    $$;

revoke all on all functions in schema dl from public;
