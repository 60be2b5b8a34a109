-- Webhook subscriptions: what is to be sent where, how far each has come, and what could not be delivered.
-- docs/decisions/webhooks.md

-- Room for updates in place: a row is written with each batch. Nothing that a batch changes is indexed.
create table dl.subscriptions (
    id                        text primary key,
    name                      text not null,
    -- the API key in whose name it delivers; that key may be dead or gone
    owner_key                 text not null,
    origin                    text not null check (origin in ('api', 'kubernetes')),
    -- of the WebhookSubscription that declares it; null: made through the API
    uid                       text unique,
    url                       text not null,
    -- as they were named: entities or schema.table; null: all whose events the key may read
    tables                    text[],
    -- as stored in dl.outbox: i, u, d, t
    ops                       text[] not null default '{i,u,d}',
    payload_query             text,
    headers                   json not null default '{}',
    max_events                integer not null default 100,
    max_bytes                 integer not null default 262144,
    max_attempts              integer not null default 10,
    initial_seconds           integer not null default 5,
    max_seconds               integer not null default 3600,
    disable_on_gone           boolean not null default false,
    suspend                   boolean not null default false,
    created_at                timestamptz not null default pg_catalog.clock_timestamp(),
    -- grows with each change of what stands above, so that a delivery under way learns of it
    version                   bigint not null default 1,

    -- the tables as the delivery found them; null: not looked up yet, so any event may be one for it
    rels                      oid[],
    -- by which catalog, and with which rights of the key, they were looked up; null: to be looked up again
    rels_of                   text,
    state                     text not null default 'enabled' check (state in ('enabled', 'disabled')),
    -- why it is disabled
    reason                    text check (reason in ('DeadLetters', 'Undelivered', 'Gone')),
    consecutive_dead_letters  integer not null default 0,
    -- everything before it is settled: a position as dl.events takes it
    cursor_tick               bigint not null,
    cursor_seq                bigint not null,
    -- events before it are sent again; null: none
    replay_tick               bigint,
    replay_seq                bigint,
    -- the batch that is tried again; null: none
    batch_id                  text,
    batch_tick                bigint,
    batch_seq                 bigint,
    batch_events              integer,
    attempts                  integer not null default 0,
    next_at                   timestamptz,
    -- while a bad event is being isolated: how many events the next batch may hold
    batch_limit               integer,
    -- who delivers: a random text that only the one who took it knows; null: nobody
    lease                     text,
    lease_until               timestamptz,

    -- what people ask
    owner_inactive            boolean not null default false,
    last_delivery_at          timestamptz,
    last_error                text,
    last_error_at             timestamptz,
    last_replay               text
) with (fillfactor = 50);
create index on dl.subscriptions (owner_key);

-- Secrets that sign, sealed under the data plane's root. One that was replaced signs until it expires.
create table dl.subscription_secrets (
    id                        text primary key,
    subscription              text not null references dl.subscriptions on delete cascade,
    sealed                    bytea not null,
    created_at                timestamptz not null default pg_catalog.clock_timestamp(),
    expires_at                timestamptz
);
create index on dl.subscription_secrets (subscription);

-- Batches that were given up, with the changes as they were captured, so that they outlast the log.
create table dl.dead_letters (
    -- the id of the batch
    id                        text primary key,
    subscription              text not null references dl.subscriptions on delete cascade,
    at                        timestamptz not null default pg_catalog.clock_timestamp(),
    n_events                  integer not null,
    attempts                  integer not null,
    -- EventIds
    first_event               text not null,
    last_event                text not null,
    -- [{tick, seq, at, rel, op, cause, image}]
    changes                   json not null,
    last_status               integer,
    last_error                text,
    -- somebody asked to send it again; null: nobody, or that was done
    redrive_at                timestamptz,
    delivered_at              timestamptz
);
create index on dl.dead_letters (subscription, at);

-- Attempts: the newest of each subscription.
create table dl.deliveries (
    id                        bigint generated always as identity primary key,
    subscription              text not null references dl.subscriptions on delete cascade,
    batch                     text not null,
    attempt                   integer not null,
    at                        timestamptz not null default pg_catalog.clock_timestamp(),
    took_ms                   integer not null,
    n_events                  integer not null,
    n_bytes                   integer not null,
    first_event               text,
    last_event                text,
    -- of the receiver's answer; null: there was none
    status                    integer,
    error                     text,
    -- the beginning of what was sent, where it failed, and of what was answered
    request                   text,
    response                  text
);
create index on dl.deliveries (subscription, id);

-- Events that a subscription has not delivered when the log gives them up.
create table dl.backlog (
    subscription              text not null references dl.subscriptions on delete cascade,
    tick                      bigint not null,
    seq                       bigint not null,
    at                        timestamptz not null,
    rel                       oid not null,
    op                        "char" not null,
    cause                     bigint,
    image                     json,
    primary key (subscription, tick, seq)
);

-- Who looks after the subscriptions of this tenant: one replica at a time.
create table dl.delivery (
    one                       boolean primary key default true check (one),
    replica                   text,
    until                     timestamptz
);
insert into dl.delivery default values;

-- Who did what: never values.
create table dl.audit (
    at                        timestamptz not null default pg_catalog.clock_timestamp(),
    key_id                    text,
    surface                   text not null,
    action                    text not null,
    subject                   text not null,
    n                         bigint
);
create index on dl.audit (at);

-- Changes behind a position that a subscription has not delivered, in their order: first those that the log gave up, then the log.
-- As of dl.events the last row has no op and says where the next page begins.
create function dl.pending(of_subscription text, after_tick bigint, after_seq bigint, rels oid[], ops text[], max_rows integer)
    returns table (tick bigint, seq bigint, at timestamptz, rel oid, op "char", cause bigint, image text)
    language plpgsql stable security definer
    set search_path = pg_catalog
    as $$
    declare
        log_floor bigint := (select l.floor from dl.event_log l);
        n integer;
    begin
        if after_tick > log_floor then
            return query select * from dl.events(after_tick, after_seq, rels, ops, max_rows);
            return;
        end if;
        return query
            select b.tick, b.seq, b.at, b.rel, b.op, b.cause, b.image::text from dl.backlog b
            where b.subscription = of_subscription and (b.tick, b.seq) > (after_tick, after_seq)
                and b.rel = any (pending.rels) and b.op::text = any (pending.ops)
            order by b.tick, b.seq limit max_rows;
        get diagnostics n = row_count;
        -- the caller knows the last row of a full page, from which it goes on
        tick := case when n = max_rows then after_tick else log_floor + 1 end;
        seq := 0;
        op := null; at := null; rel := null; cause := null; image := null;
        return next;
    end
    $$;
revoke all on function dl.pending from public;

-- The tables of which events became visible in these ticks.
create function dl.changed(first_tick bigint, last_tick bigint) returns oid[]
    language sql stable security definer
    set search_path = pg_catalog
    begin atomic
        select coalesce(array_agg(distinct o.rel), '{}')
        from dl.ticks before
        join dl.ticks present on present.number = last_tick
        cross join lateral (
            select a.rel, a.xid from dl.outbox a where a.xid >= pg_snapshot_xmax(before.snapshot) and a.xid < pg_snapshot_xmax(present.snapshot)
            union all
            select a.rel, a.xid from dl.outbox a where a.xid = any (array(select pg_snapshot_xip(before.snapshot)))
        ) o
        where before.number = first_tick - 1 and pg_visible_in_snapshot(o.xid, present.snapshot);
    end;
revoke all on function dl.changed from public;
