CREATE OR REPLACE FUNCTION dl.protect_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
-- PostgreSQL deletes a row that moves to another partition, too.
begin
    if tg_argv[1] = 'ApiOnly' and session_user !~ '^(key_[0-9a-z]{26}|t[0-9a-z]{26}_(auth|sql))$' then
        if tg_level = 'ROW' then
            return old;
        end if;
        return null;
    end if;
    -- the table as it is named in manifests, so that a cascade can be told from a DELETE of its own rows
    raise exception using errcode = 'DL405',
        schema = (select n.nspname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                  where c.oid = coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid)),
        table = (select c.relname from pg_catalog.pg_class c
                 where c.oid = coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid)),
        message = pg_catalog.format('rows of %I.%I are neither deleted nor moved to another partition', tg_table_schema, tg_table_name),
        hint = pg_catalog.format('To delete one set %I to true, and dl_expected_ts to the value that was read with it.', tg_argv[0]);
end
$function$
