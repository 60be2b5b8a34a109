-- The control database: the wire between reconciling and the data planes. Run by the operator's login.
create schema control;

-- which migrations of this series have run; kept by rowgate_pg::migrate
create table control.migrations (
    number        integer primary key,
    name          text not null,
    applied_at    timestamptz not null default now()
);

create table control.installation (
    one                      boolean primary key default true check (one),
    id                       text not null,
    system_identifier        text not null,
    -- which root secrets this installation was made with; another pair must not take it over
    operator_fingerprint     text not null,
    dataplane_fingerprint    text not null,
    created_at               timestamptz not null default now()
);

create table control.tenants (
    id            text primary key,
    slug          text not null unique,
    uid           text not null,
    namespace     text not null,
    name          text not null,
    -- null: the server of this control database
    host          text,
    port          integer,
    database      text not null unique,
    -- creating: not served yet; live: served; retained: its Tenant was deleted and its database kept
    phase         text not null default 'creating' check (phase in ('creating', 'live', 'retained')),
    -- what dl.state says in the tenant's database after the last completed pass
    generation    bigint not null default 0,
    created_at    timestamptz not null default now()
);

create table control.replicas (
    id            text primary key,
    version       text not null,
    address       text not null,
    started_at    timestamptz not null default now(),
    -- live: younger than 6 s by this database's clock
    beat_at       timestamptz not null default now()
);

create table control.served (
    replica       text not null references control.replicas on delete cascade,
    tenant        text not null,
    generation    bigint not null,
    primary key (replica, tenant)
);

grant usage on schema control to rowgate_dataplane;
grant select on control.installation, control.tenants to rowgate_dataplane;
grant select, insert, update, delete on control.replicas, control.served to rowgate_dataplane;
