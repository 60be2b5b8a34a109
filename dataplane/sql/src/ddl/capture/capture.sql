CREATE OR REPLACE FUNCTION dl.capture()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog'
 SET "TimeZone" TO 'UTC'
 SET "DateStyle" TO 'ISO'
 SET "IntervalStyle" TO 'iso_8601'
 SET bytea_output TO 'hex'
 SET extra_float_digits TO '1'
AS $function$
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
    $function$
