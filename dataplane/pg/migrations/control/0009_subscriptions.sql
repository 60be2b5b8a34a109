-- Webhook subscriptions of all tenants, as a data plane found them last: from here the data planes learn which databases hold
-- some, and reconciling what it says of them in the cluster. What is delivered stands in the tenants' databases.
create table control.subscriptions (
    tenant        text not null,
    id            text not null,
    -- api: mirrored by reconciling; kubernetes: declared by the WebhookSubscription of this uid
    origin        text not null check (origin in ('api', 'kubernetes')),
    uid           text,
    -- what the mirror shows: name, url, ownerKey, tables, ops, payloadQuery, suspend, batch, retry
    spec          json not null default '{}',
    -- state, reason, lagEvents, oldestUndelivered, consecutiveDeadLetters, deadLetters, lastDelivery, lastError, lastReplay
    status        json not null default '{}',
    changed_at    timestamptz not null default clock_timestamp(),
    primary key (tenant, id)
);
grant select, insert, update, delete on control.subscriptions to rowgate_dataplane;
