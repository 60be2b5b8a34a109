-- A database that was kept when its Tenant was deleted: since when (null: since before this column); which Tenant the platform
-- team has handed it to (null: none, so it is for the namespace that it was retained in); and whether it is being dropped, so
-- that nobody takes up half of it.
alter table control.tenants
    add column retained_at      timestamptz,
    add column handed_namespace text,
    add column handed_name      text,
    add column dropping         boolean not null default false;
