CREATE OR REPLACE FUNCTION dl.protect_keep()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
-- PostgreSQL deletes a row that moves to another partition, too.
begin
    raise exception using errcode = 'DL405',
        message = pg_catalog.format('rows of %I.%I are neither deleted nor moved to another partition', tg_table_schema, tg_table_name),
        hint = pg_catalog.format('To delete one set %I to true, and dl_expected_ts to the value that was read with it.', tg_argv[0]);
end
$function$
