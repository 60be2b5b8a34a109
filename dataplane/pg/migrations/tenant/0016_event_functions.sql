-- As 0015_functions, for row-change events.

-- Which history this is. A promoted standby and a restored backup go on in another timeline; a copy of the files does not, but its
-- server was started at another time; a database made from a dump has another oid, or is on another system.
create or replace function dl.history() returns text
    language sql stable security definer
    set search_path = pg_catalog, pg_temp
    begin atomic
        select concat_ws('/', (pg_control_system()).system_identifier,
            (select d.oid from pg_database d where d.datname = current_database()),
            left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), extract(epoch from pg_postmaster_start_time()));
    end;

create or replace function dl.has_news(before pg_snapshot, present pg_snapshot) returns boolean
    language sql stable security definer
    set search_path = pg_catalog, pg_temp
    begin atomic
        select exists (select from dl.outbox o where o.xid >= pg_snapshot_xmax(before) and pg_visible_in_snapshot(o.xid, present))
            or exists (select from dl.outbox o
                where o.xid = any (array(select pg_snapshot_xip(before))) and pg_visible_in_snapshot(o.xid, present));
    end;

-- Makes a tick if an event has become visible that the last one does not see, and gives the newest one.
create or replace function dl.tick(out number bigint, out generation integer, out floor bigint)
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
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

create or replace function dl.events(after_tick bigint, after_seq bigint, rels oid[], ops text[], max_rows integer)
    returns table (tick bigint, seq bigint, generation integer, at timestamptz, rel oid, op "char", cause bigint, image text)
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
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

create or replace function dl.key_of(image json, key_columns text[]) returns text
    language sql immutable security invoker
    set search_path = pg_catalog, pg_temp
    begin atomic
        select '[' || string_agg((image -> k.name)::text, ',' order by k.n) || ']' from unnest(key_columns) with ordinality k(name, n);
    end;

-- Which of the rows, stored as JSON, the policies of a table let the current role see: their numbers, from 1 on.
create or replace function dl.permitted(rel oid, images json) returns setof integer
    language plpgsql stable security invoker
    set search_path = pg_catalog, pg_temp
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

create or replace function dl.retire(max_bytes bigint, out bytes bigint, out oldest date, out cut_day date)
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp set lock_timeout = '500ms'
    as $$
    declare
        log dl.event_log;
        today date := (now() at time zone 'UTC')::date;
        -- of a writer that began eight days ago at most
        first date := today - 8;
        days integer;
        is_late boolean;
        left_bytes bigint;
        new_floor bigint;
    begin
        -- what has a bound of its own
        delete from dl.audit a where a.at < now() - interval '90 days';
        delete from dl.backlog b using dl.subscriptions s
            where s.id = b.subscription and (b.tick, b.seq) <= (s.cursor_tick, s.cursor_seq);
        delete from dl.deliveries d using (
            select s.id, (select x.id from dl.deliveries x where x.subscription = s.id order by x.id desc offset 200 limit 1) as last
            from dl.subscriptions s
        ) s where d.subscription = s.id and d.id <= s.last;

        select * into log from dl.event_log;
        -- where no reconciler ran for longer, a slot of before holds rows of today
        is_late := log.floor_day < today - 9;
        first := greatest(first, log.floor_day);
        select l.bytes into left_bytes from dl.log_size() l;
        while left_bytes > max_bytes and first < today and not is_late loop
            left_bytes := left_bytes - pg_total_relation_size(dl.leaf(first));
            first := first + 1;
        end loop;
        begin
            if first > log.floor_day then
                days := case when is_late then 0 else first - log.floor_day end;
                -- from here on nothing is added to them; readers go on
                for day in 0..days - 1 loop
                    execute format('lock table only %s in share row exclusive mode', dl.leaf(log.floor_day + day));
                end loop;
                new_floor := dl.last_tick_of(first - least(first - log.floor_day, 10), first);
                if new_floor is null then
                    perform dl.tick();
                    new_floor := dl.last_tick_of(first - least(first - log.floor_day, 10), first);
                end if;
                new_floor := greatest(log.floor, new_floor, (select max(t.number) from dl.ticks t where t.at < now() - interval '7 days'));
                perform dl.keep(s.id, new_floor) from dl.subscriptions s where s.cursor_tick <= new_floor;
                for day in 0..days - 1 loop
                    execute format('truncate only %s', dl.leaf(log.floor_day + day));
                end loop;
                if is_late then
                    delete from dl.outbox o where o.at < first::timestamp at time zone 'UTC';
                end if;
                update dl.event_log l set floor_day = first, floor = greatest(l.floor, new_floor),
                    cut_day = case when first > today - 8 then first else l.cut_day end;
                delete from dl.ticks t where t.number < new_floor;
            end if;
        exception when lock_not_available then
            null;
        end;
        select s.bytes, s.oldest into bytes, oldest from dl.log_size() s;
        -- told as long as it is later than the window
        select l.cut_day into cut_day from dl.event_log l where l.cut_day > today - 8;
    end
    $$;

create or replace function dl.pending(of_subscription text, after_tick bigint, after_seq bigint, rels oid[], ops text[], max_rows integer)
    returns table (tick bigint, seq bigint, generation integer, at timestamptz, rel oid, op "char", cause bigint, image text)
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    declare
        log_floor bigint;
        n integer := 0;
    begin
        if after_tick > (select l.floor from dl.event_log l) then
            return query
                with page as materialized (select * from dl.events(after_tick, after_seq, rels, ops, max_rows))
                select p.* from page p where exists (select from page l where l.op is null);
            get diagnostics n = row_count;
        end if;
        if n > 0 then
            return;
        end if;
        log_floor := (select l.floor from dl.event_log l);
        return query
            select b.tick, b.seq, dl.generation_of(b.tick), b.at, b.rel, b.op, b.cause, b.image::text from dl.backlog b
            where b.subscription = of_subscription and (b.tick, b.seq) > (after_tick, after_seq)
                and b.rel = any (pending.rels) and b.op::text = any (pending.ops)
            order by b.tick, b.seq limit max_rows;
        get diagnostics n = row_count;
        -- the caller knows the last row of a full page, from which it goes on
        tick := case when n = max_rows then after_tick else log_floor + 1 end;
        seq := 0;
        generation := dl.generation_of(tick - 1);
        op := null; at := null; rel := null; cause := null; image := null;
        return next;
    end
    $$;

-- The tables of which events became visible in these ticks.
create or replace function dl.changed(first_tick bigint, last_tick bigint) returns oid[]
    language sql stable security definer
    set search_path = pg_catalog, pg_temp
    begin atomic
        select coalesce(array_agg(distinct o.rel), '{}')
        from dl.ticks before
        join dl.ticks present on present.number = last_tick
        cross join lateral (
            select a.rel, a.xid from dl.outbox a where a.xid >= pg_snapshot_xmax(before.snapshot) and a.xid < pg_snapshot_xmax(present.snapshot)
            union all
            select a.rel, a.xid from dl.outbox a where a.xid = any (array(select pg_snapshot_xip(before.snapshot)))
        ) o
        where before.number = first_tick - 1 and pg_visible_in_snapshot(o.xid, present.snapshot);
    end;

create or replace function dl.generation_of(tick bigint) returns integer
    language sql stable security definer
    set search_path = pg_catalog, pg_temp
    begin atomic
        select g.generation from dl.generations g where g.first_tick <= tick order by g.first_tick desc limit 1;
    end;

-- Whether a reader goes on exactly here: the tick is of that generation, or all before it was read and the tick before is.
create or replace function dl.holds(generation integer, tick bigint, seq bigint) returns boolean
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    declare
        newest bigint := (select max(t.number) from dl.ticks t);
    begin
        return (select l.floor from dl.event_log l) < tick
            and (tick <= newest and dl.generation_of(tick) = holds.generation
                or seq = 0 and tick <= newest + 1 and dl.generation_of(tick - 1) = holds.generation);
    end
    $$;

create or replace function dl.leaf(day date) returns regclass
    language sql stable security definer
    set search_path = pg_catalog, pg_temp
    begin atomic
        select ('dl.outbox_' || (day - date '1970-01-01') % 10)::regclass;
    end;

-- What the log takes on disk, and the first day that it holds.
create or replace function dl.log_size(out bytes bigint, out oldest date)
    language sql stable security definer
    set search_path = pg_catalog, pg_temp
    begin atomic
        select (select sum(pg_total_relation_size(i.inhrelid))::bigint from pg_inherits i where i.inhparent = 'dl.outbox'::regclass),
            (select l.floor_day from dl.event_log l);
    end;

-- The first tick that sees all events of these days; null: none does yet.
create or replace function dl.last_tick_of(first_day date, end_day date) returns bigint
    language plpgsql stable security definer
    set search_path = pg_catalog, pg_temp
    as $$
    declare
        over timestamptz := end_day::timestamp at time zone 'UTC';
        slots smallint[] := array(select (first_day + n - date '1970-01-01') % 10 from generate_series(0, end_day - first_day - 1) n);
        low bigint := coalesce((select max(t.number) from dl.ticks t where t.at < over), (select min(t.number) from dl.ticks t));
        high bigint := (select max(t.number) + 1 from dl.ticks t);
        newest bigint := high - 1;
        middle bigint;
        seen pg_snapshot;
    begin
        while low < high loop
            middle := (low + high) / 2;
            select t.snapshot into seen from dl.ticks t where t.number = middle;
            if exists (select from dl.outbox o where o.slot = any (slots) and o.at < over and o.xid >= pg_snapshot_xmax(seen))
                or exists (select from dl.outbox o where o.slot = any (slots) and o.at < over and o.xid = any (array(select pg_snapshot_xip(seen))))
            then
                low := middle + 1;
            else
                high := middle;
            end if;
        end loop;
        return nullif(low, newest + 1);
    end
    $$;

-- Copies what a subscription has not settled of the ticks up to this one, so that it outlasts the log.
create or replace function dl.keep(subscription text, last_tick bigint) returns void
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    declare
        wanted dl.subscriptions;
        log dl.event_log;
        from_tick bigint;
        from_seq bigint;
    begin
        select * into wanted from dl.subscriptions s where s.id = subscription;
        select * into log from dl.event_log;
        from_tick := greatest(wanted.cursor_tick, log.floor + 1);
        from_seq := case when from_tick = wanted.cursor_tick then wanted.cursor_seq else 0 end;
        while from_tick <= last_tick loop
            with page as materialized (
                select * from dl.events(from_tick, from_seq, wanted.rels, wanted.ops, 5000)
            ), kept as (
                insert into dl.backlog (subscription, tick, seq, at, rel, op, cause, image)
                select keep.subscription, p.tick, p.seq, p.at, p.rel, p.op, p.cause, p.image::json from page p
                where p.op is not null and p.tick <= last_tick
                on conflict do nothing
            )
            select p.tick, p.seq into from_tick, from_seq from page p order by p.tick desc, p.seq desc limit 1;
        end loop;
    end
    $$;

-- Policies that dl.permitted cannot evaluate over a stored row of their table, such as those that name a system column: PostgreSQL
-- plans each as it would, and evaluates none.
create or replace function dl.undecidable() returns table ("schema" text, "table" text, policy text, code text)
    language plpgsql volatile security invoker
    set search_path = pg_catalog, pg_temp
    as $$
    declare
        found record;
    begin
        for found in
            select n.nspname, c.relname, p.polname, p.polrelid::regclass as rel, pg_get_expr(p.polqual, p.polrelid) as qual
            from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
            where p.polcmd in ('r', '*') and p.polqual is not null and not c.relispartition
                and exists (select from pg_trigger t where t.tgrelid = p.polrelid and t.tgfoid = to_regprocedure('dl.capture()'))
            order by 1, 2, 3
        loop
            begin
                execute format('explain select from json_populate_record(null::%s, null) as %I where %s', found.rel, found.relname, found.qual);
            exception when others then
                get stacked diagnostics code = returned_sqlstate;
                "schema" := found.nspname;
                "table" := found.relname;
                policy := found.polname;
                return next;
            end;
        end loop;
    end
    $$;
