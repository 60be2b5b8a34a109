-- A page of a tick of many events costs what the page does, and not what the tick does: 50,000 rows of one COPY, or what was written while no
-- replica ran, were all read for each page. docs/decisions/events.md

-- The first and the last number of its events. Null where most of what stands between them is of other ticks, as after a transaction that took
-- hours, where there are more than two million, and in ticks that were made while a leaf had no index on seq.
alter table dl.ticks add column if not exists seq_first bigint, add column if not exists seq_last bigint;
alter table dl.event_log add column if not exists is_indexed boolean not null default false;

-- A leaf is given its index while it is empty, so that no writer waits for it.
create or replace function dl.index_leaf(leaf regclass) returns void
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    begin
        execute format('create index if not exists %I on %s (seq)', (select c.relname || '_seq_idx' from pg_class c where c.oid = leaf), leaf);
        update dl.event_log l set is_indexed = 10 = (
            select count(*) from pg_class c where c.relnamespace = 'dl'::regnamespace and c.relname ~ '^outbox_[0-9]_seq_idx$'
        ) where not l.is_indexed;
    end
    $$;
revoke all on function dl.index_leaf from public;

do $$
begin
    perform dl.index_leaf(i.inhrelid) from pg_catalog.pg_inherits i
    where i.inhparent = 'dl.outbox'::pg_catalog.regclass and pg_catalog.pg_relation_size(i.inhrelid) = 0;
end
$$;

create or replace function dl.span(before pg_snapshot, present pg_snapshot, out seq_first bigint, out seq_last bigint)
    language plpgsql stable security definer
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan
    as $$
    declare
        n bigint;
    begin
        select count(*), min(e.seq), max(e.seq) into n, seq_first, seq_last from (
            select o.seq from (
                select a.seq, a.xid from dl.outbox a where a.xid >= pg_snapshot_xmax(before) and a.xid < pg_snapshot_xmax(present)
                union all
                select a.seq, a.xid from dl.outbox a where a.xid = any (array(select pg_snapshot_xip(before)))
            ) o
            where pg_visible_in_snapshot(o.xid, present) limit 2000001
        ) e;
        if n > 2000000 or seq_last - seq_first >= 8 * n then
            seq_first := null;
            seq_last := null;
        end if;
    end
    $$;
revoke all on function dl.span from public;

-- As in 0016_event_functions.sql, with these numbers.
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
                insert into dl.ticks as t (number, generation, snapshot, seq_first, seq_last)
                    select last.number + 1, log.generation, present, e.seq_first, e.seq_last
                    from (select) one left join lateral dl.span(last.snapshot, present) e on log.is_indexed
                    returning * into last;
            end if;
        end if;
        number := last.number;
        generation := last.generation;
        floor := log.floor;
    end
    $$;

-- As there, and a tick is read by the index on `seq` between its first event and its last.
create or replace function dl.events(after_tick bigint, after_seq bigint, rels oid[], ops text[], max_rows integer)
    returns table (tick bigint, seq bigint, generation integer, at timestamptz, rel oid, op "char", cause bigint, image text)
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan
    as $$
    declare
        newest bigint := (select max(t.number) from dl.ticks t);
        before dl.ticks;
        present dl.ticks;
        taken integer := 0;
        n integer;
    begin
        select * into before from dl.ticks t where t.number = after_tick - 1;
        tick := after_tick;
        seq := after_seq;
        while tick <= newest and taken < max_rows and tick < after_tick + 1000 loop
            select * into present from dl.ticks t where t.number = tick;
            generation := present.generation;
            if present.seq_last is null then
                return query
                    select tick, o.seq, generation, o.at, o.rel, o.op, o.cause, o.image::text from (
                        select * from dl.outbox a
                        where a.xid >= pg_snapshot_xmax(before.snapshot) and a.xid < pg_snapshot_xmax(present.snapshot)
                        union all
                        select * from dl.outbox a where a.xid = any (array(select pg_snapshot_xip(before.snapshot)))
                    ) o
                    where o.seq > events.seq and pg_visible_in_snapshot(o.xid, present.snapshot)
                        and (rels is null or o.rel = any (rels)) and o.op::text = any (ops)
                    order by o.seq limit max_rows - taken;
            else
                return query
                    select tick, a.seq, generation, a.at, a.rel, a.op, a.cause, a.image::text from dl.outbox a
                    -- without a bound of xid, for which PostgreSQL would go by the other index and read the tick
                    where a.seq > greatest(events.seq, present.seq_first - 1) and a.seq <= present.seq_last
                        and pg_visible_in_snapshot(a.xid, present.snapshot) and not pg_visible_in_snapshot(a.xid, before.snapshot)
                        and (rels is null or a.rel = any (rels)) and a.op::text = any (ops)
                    order by a.seq limit max_rows - taken;
            end if;
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

-- As there: the leaf of a day that is over is given its index when it is emptied.
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
                    perform dl.index_leaf(dl.leaf(log.floor_day + day));
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
