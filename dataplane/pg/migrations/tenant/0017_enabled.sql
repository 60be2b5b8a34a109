-- Row-level security is enabled and no longer forced on the owner of a table, and views that keys reach belong to t<id>_views. docs/decisions/owners-rows.md

-- Called last by the transaction that grants: holds the relations until its COMMIT, and fails with RG002 unless they are those that the
-- plan was made for, each with the owner that the plan names, and each table with its row-level security enabled. It waits as long as the transaction that calls it, which
-- may hold tables that others want to read, and whose answer says that somebody holds a table (55P03).
create or replace function dl.stand(wanted jsonb) returns void
    language plpgsql volatile security invoker
    set search_path = pg_catalog, pg_temp
    as $$
    declare
        one record;
    begin
        for one in
            select * from pg_catalog.jsonb_to_recordset(wanted) as r(schema text, name text, oid bigint, rule bigint, owner text)
            order by oid
        loop
            begin
                execute pg_catalog.format('lock table only %I.%I in access share mode', one.schema, one.name);
            exception when undefined_table or invalid_schema_name or wrong_object_type then
                raise exception '%.% is gone', one.schema, one.name using errcode = 'RG002';
            when insufficient_privilege then
                -- a view is locked with what its owner reads through it: another one than that of the plan
                raise exception '%.% was changed while rights on it were granted', one.schema, one.name using errcode = 'RG002';
            end;
            if not exists (
                select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                where n.nspname = one.schema and c.relname = one.name and c.oid = one.oid
                and coalesce(one.owner, pg_catalog.pg_get_userbyid(c.relowner)) = pg_catalog.pg_get_userbyid(c.relowner)
                and case
                    when c.relkind in ('r', 'p') then c.relrowsecurity
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
