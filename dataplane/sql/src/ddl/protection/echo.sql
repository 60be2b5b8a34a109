CREATE OR REPLACE FUNCTION dl.protect_echo()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
-- Runs only for updates that name dl_expected_ts, and leaves NULL there for dl.protect_stamp: the column is NOT NULL, so
-- that no row holds it, and nobody's value is taken for it.
begin
    -- The login of the session says whether the API writes, also below a cascade or a function that is SECURITY DEFINER. What
    -- others give as a version counts for nothing.
    if tg_argv[0] = 'ApiOnly' and session_user !~ '^(key_[0-9a-z]{26}|t[0-9a-z]{26}_(auth|sql))$' then
        return new;
    end if;
    if new.dl_expected_ts is null then
        -- the table as it is named in manifests, so that a change by a foreign key or a trigger of another one can be told apart
        raise exception using errcode = 'DL428',
            schema = (select n.nspname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                      where c.oid = coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid)),
            table = (select c.relname from pg_catalog.pg_class c
                     where c.oid = coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid)),
            message = pg_catalog.format('an update of %I.%I has to say which version of the row it knows', tg_table_schema, tg_table_name),
            hint = 'Set dl_expected_ts to the value that was read with the row, not to NULL.';
    end if;
    if new.dl_expected_ts is distinct from old.dl_expected_ts then
        raise exception using errcode = 'DL409',
            schema = (select n.nspname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                      where c.oid = coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid)),
            table = (select c.relname from pg_catalog.pg_class c
                     where c.oid = coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid)),
            message = pg_catalog.format('the row of %I.%I is no longer the one that was read', tg_table_schema, tg_table_name),
            hint = 'Read it again, and set dl_expected_ts to the value that it has now.';
    end if;
    new.dl_expected_ts := null;
    return new;
end
$function$
