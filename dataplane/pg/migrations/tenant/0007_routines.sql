-- As dl.stand, for what is called: fails with RG002 unless each is the only routine of its name, the one that the plan was
-- made for, SECURITY DEFINER or not as it was then. What somebody swaps in between would stand granted otherwise.
create function dl.stand_routines(wanted jsonb) returns void
    language plpgsql volatile security invoker
    set search_path = ''
    as $$
    declare
        one record;
    begin
        for one in
            select * from pg_catalog.jsonb_to_recordset(wanted) as r(schema text, name text, oid bigint, definer boolean)
        loop
            if (select pg_catalog.count(*) <> 1 or not pg_catalog.bool_and(p.oid = one.oid and p.prosecdef = one.definer)
                from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
                where n.nspname = one.schema and p.proname = one.name)
            then
                raise exception '%.% was changed while rights on it were granted', one.schema, one.name
                    using errcode = 'RG002';
            end if;
        end loop;
    end
    $$;

revoke all on function dl.stand_routines(jsonb) from public;

-- Calls that run now (lane C), so that whoever finds a key dead can end them wherever they run. A row is written, by
-- t<id>_auth and only while the key lives, in a transaction that ends before the call is sent; so a revocation either
-- comes first and there is no call, or finds the row. It is deleted when the call is over.
--
-- Unlogged: a crash ends every backend that a row could be about.
create unlogged table dl.backends (
    pid            integer not null,
    -- with it the pid is this backend's and not that of one that came after
    backend_start  timestamptz not null,
    key_id         text not null,
    -- what the backend is logged in as: key_<id>, or t<id>_sql
    login          name not null,
    -- of the data plane that sent the call
    replica        text not null,
    since          timestamptz not null default pg_catalog.clock_timestamp(),
    primary key (pid, backend_start)
);
