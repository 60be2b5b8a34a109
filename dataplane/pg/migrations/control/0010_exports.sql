-- Export jobs of all tenants. The rows that they export stand in files of the data planes, never here.
create table control.exports (
    id            text primary key,
    tenant        text not null,
    -- the API key that asked, as which its rows are read
    key           text not null,
    -- what was asked, as it was sent
    request       json not null,
    -- what the file is called where it is downloaded
    name          text not null,
    status        text not null default 'queued' check (status in ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    -- grows with each attempt: only the one that holds the newest may say what became of the job
    fence         integer not null default 0,
    -- attempts that ended without a result
    attempts      integer not null default 0,
    -- which replica runs it, and until when it is believed
    replica       text,
    lease_until   timestamptz,
    -- not to be run before
    due_at        timestamptz not null default clock_timestamp(),
    rows          bigint not null default 0,
    bytes         bigint not null default 0,
    -- how many rows PostgreSQL expects
    estimate      bigint,
    capped        boolean not null default false,
    event_cursor  text,
    error_code    text,
    error_message text,
    created_at    timestamptz not null default clock_timestamp(),
    started_at    timestamptz,
    finished_at   timestamptz,
    -- when the job and its file go
    expires_at    timestamptz
);
create index exports_by_key on control.exports (tenant, key, id);
create index exports_unfinished on control.exports (id) where status in ('queued', 'running');
create index exports_expiring on control.exports (expires_at) where expires_at is not null;
grant select, insert, update, delete on control.exports to rowgate_dataplane;
