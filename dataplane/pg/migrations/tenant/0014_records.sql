-- From here on schema `dl` belongs to t<id>_dl, as which no code of the tenant runs, and migrations run as that login. docs/decisions/records.md
--
-- A dump that the owner of the tables restored brings an older owner along: then these migrations run again, so that each can.

alter default privileges revoke execute on routines from public;

-- What a transaction of the owner of the tables will write here: policies, grants and records change together, and whoever may run the
-- tenant's expressions may not write records. Staged by t<id>_dl under a random token.
create table if not exists dl.staged (
    token_hash    bytea primary key,
    -- [{sql, values}]: statements of ours, and their values as text
    statements    jsonb not null,
    at            timestamptz not null default pg_catalog.clock_timestamp()
);

-- Runs what is staged under the token, once. An error says in its detail which of the statements failed, from 0 on.
create or replace function dl.publish(token bytea) returns void
    language plpgsql volatile security definer
    -- whatever code of the tenant has set in this session
    set search_path = pg_catalog, pg_temp set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'postgres'
    set row_security = on set transform_null_equals = off set array_nulls = on set standard_conforming_strings = on
    set quote_all_identifiers = off
    as $$
    declare
        staged jsonb;
        one record;
        at integer := -1;
        code text;
        what text;
    begin
        delete from dl.staged s where s.token_hash = sha256(token) returning s.statements into staged;
        if staged is null then
            raise exception 'nothing is staged under this token' using errcode = '42501';
        end if;
        for one in
            select e.of ->> 'sql' as text, array(select jsonb_array_elements_text(e.of -> 'values')) as given
            from jsonb_array_elements(staged) with ordinality e(of, n) order by e.n
        loop
            at := at + 1;
            execute one.text using one.given;
        end loop;
    exception when others then
        get stacked diagnostics code = returned_sqlstate, what = message_text;
        raise exception using errcode = code, message = what, detail = at::text;
    end
    $$;

create or replace view dl.own_claims with (security_barrier) as
    select c.name, c.value from dl.claims c where c.role = current_user;

create or replace view dl.live as
    select s.digest, s.id as secret, k.id, k.role, k.set_role, least(k.expires_at, s.expires_at) as expires_at
    from dl.key_secrets s
    join dl.keys k on k.id = s.key_id
    where s.revoked_at is null and k.revoked_at is null
    -- of two times one may be null; where both are it lives on
    and coalesce(least(k.expires_at, s.expires_at) > now(), true);

-- What the owner of the tables needs: to ask the fence, to publish, to capture rows (dl.capture and dl.capture_row stay its own, because the JSON of a row
-- may run casts of the tenant's), and to read claims in policies. It writes no number of an event, and no time.
do $$
declare
    owner name := (select pg_catalog.pg_get_userbyid(d.datdba) from pg_catalog.pg_database d where d.datname = pg_catalog.current_database());
begin
    execute pg_catalog.format('grant usage on schema dl to %I', owner);
    execute pg_catalog.format('grant select on dl.own_claims to %I', owner);
    execute pg_catalog.format('grant insert (slot, rel, op, cause, image), select (seq, xid, rel, op) on dl.outbox to %I', owner);
    execute pg_catalog.format('grant usage on sequence dl.outbox_seq to %I', owner);
    execute pg_catalog.format('grant execute on function dl.fence(bigint), dl.publish(bytea), dl.stand(jsonb), dl.stand_routines(jsonb), '
        'dl.undecidable(), dl.key_of(json, text[]), dl.claim(text) to %I', owner);
end
$$;
