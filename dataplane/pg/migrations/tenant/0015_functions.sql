-- The functions of schema `dl` as they stand, made once more by its owner: the owner of the tables could have replaced them before. With pg_temp last,
-- which is looked into first where it is not named, so that no temporary type or table of a caller stands for one of PostgreSQL's.

-- Without settings of its own, which would cost as much as the function; its body was read when it was made, so that no
-- search path matters.
create or replace function dl.claim(name text) returns text
    language sql stable security invoker parallel safe
    return (select c.value from dl.own_claims c where c.name = claim.name);

-- Revokes a key for good. From this COMMIT on every batch of it is refused; roles are closed by the next pass.
create or replace function dl.revoke(key_id text) returns timestamptz
    language sql volatile security definer
    set search_path = pg_catalog, pg_temp
    begin atomic
        update dl.keys set revoked_at = coalesce(revoked_at, clock_timestamp())
        where id = key_id returning revoked_at;
    end;

-- Called first by every transaction that changes this database: fails for a former leader.
create or replace function dl.fence(wanted bigint) returns void
    language plpgsql volatile security definer
    set search_path = pg_catalog, pg_temp
    as $$
    declare
        present bigint;
    begin
        select epoch into present from dl.state for share;
        if present > wanted then
            raise exception 'this reconciler was replaced (epoch % is newer than %)', present, wanted using errcode = 'RG001';
        end if;
    end
    $$;

-- Called last by the transaction that grants: holds the relations until its COMMIT, and fails with RG002 unless they are those that the
-- plan was made for, each table with its row-level security enabled and forced. It waits as long as the transaction that calls it, which may hold tables that others want to
-- read, and whose answer says that somebody holds a table (55P03).
create or replace function dl.stand(wanted jsonb) returns void
    language plpgsql volatile security invoker
    set search_path = pg_catalog, pg_temp
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
            exception when undefined_table or invalid_schema_name or wrong_object_type then
                raise exception '%.% is gone', one.schema, one.name using errcode = 'RG002';
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

-- As dl.stand, for what is called: fails with RG002 unless each is the only routine of its name, the one that the plan was
-- made for, SECURITY DEFINER or not as it was then. What somebody swaps in between would stand granted otherwise.
create or replace function dl.stand_routines(wanted jsonb) returns void
    language plpgsql volatile security invoker
    set search_path = pg_catalog, pg_temp
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
