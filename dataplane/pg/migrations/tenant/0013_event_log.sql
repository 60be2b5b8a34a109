-- What is captured of replicated rows, and what the log keeps: by time, by bytes, and for whom. docs/decisions/events.md

-- Runs for each row that is replicated: the apply worker of a subscription runs no triggers for statements but those of truncate.
create function dl.capture_row() returns trigger
    language plpgsql security definer
    set search_path = pg_catalog set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'iso_8601' set bytea_output = 'hex'
    set extra_float_digits = '1'
    as $$
    declare
        root oid := coalesce(pg_partition_root(tg_relid), tg_relid);
        today smallint := (extract(epoch from clock_timestamp())::bigint / 86400 % 10)::smallint;
        old_image json := case when tg_op <> 'INSERT' then row_to_json(old) end;
        new_image json := case when tg_op <> 'DELETE' then row_to_json(new) end;
        cause bigint;
    begin
        if tg_op = 'UPDATE' and dl.key_of(old_image, tg_argv) <> dl.key_of(new_image, tg_argv) then
            cause := nextval('dl.outbox_seq');
            insert into dl.outbox (slot, rel, op, cause, image) values (today, root, 'd', cause, old_image);
            insert into dl.outbox (slot, rel, op, cause, image) values (today, root, 'i', cause, new_image);
            return null;
        end if;
        insert into dl.outbox (slot, rel, op, image)
            values (today, root, case tg_op when 'INSERT' then 'i' when 'UPDATE' then 'u' else 'd' end, coalesce(new_image, old_image));
        return null;
    end
    $$;

-- Since when events were given up early, because the log had reached its limit of bytes; null: never.
alter table dl.event_log add cut_day date;
create index on dl.backlog (at);

create function dl.leaf(day date) returns regclass
    language sql stable security definer
    set search_path = pg_catalog
    begin atomic
        select ('dl.outbox_' || (day - date '1970-01-01') % 10)::regclass;
    end;

-- What the log takes on disk, and the first day that it holds.
create function dl.log_size(out bytes bigint, out oldest date)
    language sql stable security definer
    set search_path = pg_catalog
    begin atomic
        select (select sum(pg_total_relation_size(i.inhrelid))::bigint from pg_inherits i where i.inhparent = 'dl.outbox'::regclass),
            (select l.floor_day from dl.event_log l);
    end;

-- The first tick that sees all events of these days; null: none does yet.
create function dl.last_tick_of(first_day date, end_day date) returns bigint
    language plpgsql stable security definer
    set search_path = pg_catalog
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
create function dl.keep(subscription text, last_tick bigint) returns void
    language plpgsql volatile security definer
    set search_path = pg_catalog
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

-- Empties the days that are over: the floor is 7 days ago, or later where the log is beyond its limit of bytes. What
-- subscriptions have not settled stays in dl.backlog. Runs with each pass of the reconciler, behind a tick; where another session
-- holds the leaf of a day, the next one goes on.
drop function dl.retire;
create function dl.retire(max_bytes bigint, out bytes bigint, out oldest date, out cut_day date)
    language plpgsql volatile security definer
    set search_path = pg_catalog set lock_timeout = '500ms'
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

-- Policies that dl.permitted cannot evaluate over a stored row of their table, such as those that name a system column: PostgreSQL
-- plans each as it would, and evaluates none.
create function dl.undecidable() returns table ("schema" text, "table" text, policy text, code text)
    language plpgsql volatile security definer
    set search_path = pg_catalog
    as $$
    declare
        found record;
    begin
        for found in
            select n.nspname, c.relname, p.polname, p.polrelid::regclass as rel, pg_get_expr(p.polqual, p.polrelid) as qual
            from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
            where p.polcmd in ('r', '*') and p.polqual is not null and not c.relispartition
                and exists (select from pg_trigger t where t.tgrelid = p.polrelid and t.tgfoid = 'dl.capture()'::regprocedure)
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

-- As before, with the generation. What the log gives up while it is read stands in the backlog.
drop function dl.pending;
create function dl.pending(of_subscription text, after_tick bigint, after_seq bigint, rels oid[], ops text[], max_rows integer)
    returns table (tick bigint, seq bigint, generation integer, at timestamptz, rel oid, op "char", cause bigint, image text)
    language plpgsql volatile security definer
    set search_path = pg_catalog
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

revoke all on all functions in schema dl from public;
