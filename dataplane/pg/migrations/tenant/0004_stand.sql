-- Called last by the transaction that grants: holds the relations until its COMMIT, and fails with RG002 unless they are
-- those that the plan was made for, each table with its row-level security enabled and forced. What somebody swaps or
-- opens between the plan and the grants would stand granted otherwise.
create function dl.stand(wanted jsonb) returns void
    language plpgsql volatile security invoker
    set search_path = '' set lock_timeout = '5s'
    as $$
    declare
        one record;
    begin
        for one in
            select * from pg_catalog.jsonb_to_recordset(wanted) as r(schema text, name text, oid bigint, rule bigint)
            order by oid
        loop
            begin
                execute pg_catalog.format('lock table only %I.%I in access share mode', one.schema, one.name);
            exception when undefined_table or invalid_schema_name or wrong_object_type or lock_not_available then
                raise exception '%.% is gone or locked by somebody', one.schema, one.name using errcode = 'RG002';
            end;
            if not exists (
                select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                where n.nspname = one.schema and c.relname = one.name and c.oid = one.oid
                and case
                    when c.relkind in ('r', 'p') then c.relrowsecurity and c.relforcerowsecurity
                    else c.relkind = 'v' and one.rule = (
                        select pg_catalog.max(w.xmin::text::bigint) from pg_catalog.pg_rewrite w where w.ev_class = c.oid)
                end
            ) then
                raise exception '%.% was changed while rights on it were granted', one.schema, one.name
                    using errcode = 'RG002';
            end if;
        end loop;
    end
    $$;

revoke all on function dl.stand(jsonb) from public;
