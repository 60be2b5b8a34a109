CREATE OR REPLACE FUNCTION dl.protect_stamp()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
-- The version of a row always moves forward, whatever the clock does.
begin
    if tg_op = 'INSERT' then
        new.dl_expected_ts := pg_catalog.clock_timestamp();
        return new;
    end if;
    -- NULL says that dl.protect_echo has compared it, where this login has to say a version
    if new.dl_expected_ts is not null
        and (tg_argv[0] = 'ApiOnly' and session_user !~ '^(key_[0-9a-z]{26}|t[0-9a-z]{26}_(auth|sql))$') is not true then
        -- the table as it is named in manifests, so that a change by a foreign key or a trigger of another one can be told apart
        raise exception using errcode = 'DL428',
            schema = (select n.nspname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                      where c.oid = coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid)),
            table = (select c.relname from pg_catalog.pg_class c
                     where c.oid = coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid)),
            message = pg_catalog.format('an update of %I.%I has to say which version of the row it knows', tg_table_schema, tg_table_name),
            hint = 'Set dl_expected_ts to the value that was read with the row.';
    end if;
    new.dl_expected_ts := pg_catalog.clock_timestamp();
    -- a row from before the table was protected may hold infinity, after which nothing comes
    if new.dl_expected_ts <= old.dl_expected_ts and pg_catalog.isfinite(old.dl_expected_ts) then
        new.dl_expected_ts := old.dl_expected_ts + interval '1 microsecond';
    end if;
    return new;
end
$function$
