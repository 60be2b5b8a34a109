-- Schema `dl` of a tenant's database. Run logged in as t<id>_dl. Grants to t<id>_auth, datalake_user and the set
-- roles are part of the reconcile plan.

create schema dl;

-- which migrations of this series have run; kept by rowgate_pg::migrate
create table dl.migrations (
    number        integer primary key,
    name          text not null,
    applied_at    timestamptz not null default now()
);

create table dl.state (
    one               boolean primary key default true check (one),
    -- grows with every pass that changed what is served; the key statement returns it
    generation        bigint not null default 0,
    -- the fence: a pass with an older epoch fails before it changes anything
    epoch             bigint not null default 0,
    bootstrapped_at   timestamptz,
    limits            jsonb not null default '{}'
);
insert into dl.state default values;

create table dl.keys (
    id            text primary key,
    -- metadata.uid of the ApiKey
    uid           text not null unique,
    namespace     text not null,
    name          text not null,
    -- what the key is in the database: datalake_user or key_<id>
    role          name not null,
    -- who holds its grants: datalake_user or set_<id>; null: nothing granted (yet)
    set_role      name,
    created_at    timestamptz not null default now(),
    expires_at    timestamptz,
    revoked_at    timestamptz,
    last_used_at  timestamptz,
    -- what reconciling resolved this key's scope to, and from which generations
    resolved      jsonb not null default '{}'
);

create table dl.key_secrets (
    id            text primary key,
    key_id        text not null references dl.keys on delete cascade,
    -- the 12 characters of the secret that may be shown
    finder        text not null,
    -- HMAC-SHA-256 of the secret under the pepper
    digest        bytea not null unique,
    created_at    timestamptz not null default now(),
    expires_at    timestamptz,
    revoked_at    timestamptz
);
create index key_secrets_key on dl.key_secrets (key_id);

create table dl.claims (
    role          name not null,
    name          text not null,
    value         text not null,
    primary key (role, name)
);
alter table dl.claims enable row level security;
create policy own on dl.claims for select using (role = current_user);

create table dl.entities (
    name          text primary key,
    definition    jsonb not null
);

create table dl.permission_sets (
    role          name primary key,
    -- of the sorted permissions: equal sets share a role
    hash          text not null,
    permissions   jsonb not null
);

-- What PostgreSQL gave back after a policy or a routine was applied, with the hash of what was asked for:
-- it rewrites expressions, so drift is "current is not what was recorded".
create table dl.applied (
    kind          text not null,
    name          text not null,
    hash          text not null,
    recorded      text not null,
    primary key (kind, name)
);

-- A claim of the calling role. NULL when there is none, so that a policy over it shows no row.
create function dl.claim(name text) returns text
    language sql stable security invoker parallel safe
    set search_path = ''
    return (select c.value from dl.claims c where c.role = current_user and c.name = claim.name);

-- Revokes a key for good. From this COMMIT on every batch of it is refused; roles are closed by the next pass.
create function dl.revoke(key_id text) returns timestamptz
    language sql volatile security definer
    set search_path = ''
    begin atomic
        update dl.keys set revoked_at = coalesce(revoked_at, pg_catalog.clock_timestamp())
        where id = key_id returning revoked_at;
    end;

-- Called first by every transaction that changes this database: fails for a former leader.
create function dl.fence(wanted bigint) returns void
    language plpgsql volatile security definer
    set search_path = ''
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

revoke all on all functions in schema dl from public;
