-- Counting what waits for a subscription reads no images: of ten thousand events of 2 kB they were written to temporary files, three times, each
-- second. `#` among the ops, which is none of an event, asks for events without images; until this migration is made, it changes nothing.

-- As in 0020_event_pages.sql, but for the images.
create or replace function dl.events(after_tick bigint, after_seq bigint, rels oid[], ops text[], max_rows integer)
    returns table (tick bigint, seq bigint, generation integer, at timestamptz, rel oid, op "char", cause bigint, image text)
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan
    as $$
    declare
        newest bigint := (select max(t.number) from dl.ticks t);
        with_images boolean := '#' <> all (ops);
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
                    select tick, o.seq, generation, o.at, o.rel, o.op, o.cause, case when with_images then o.image::text end from (
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
                    select tick, a.seq, generation, a.at, a.rel, a.op, a.cause, case when with_images then a.image::text end from dl.outbox a
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

-- As in 0016_event_functions.sql with the settings of 0019_event_indexes.sql, but for the images.
create or replace function dl.pending(of_subscription text, after_tick bigint, after_seq bigint, rels oid[], ops text[], max_rows integer)
    returns table (tick bigint, seq bigint, generation integer, at timestamptz, rel oid, op "char", cause bigint, image text)
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off
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
            select b.tick, b.seq, dl.generation_of(b.tick), b.at, b.rel, b.op, b.cause, case when '#' <> all (ops) then b.image::text end from dl.backlog b
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
