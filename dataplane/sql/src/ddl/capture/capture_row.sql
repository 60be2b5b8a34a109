CREATE OR REPLACE FUNCTION dl.capture_row()
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
    $function$
