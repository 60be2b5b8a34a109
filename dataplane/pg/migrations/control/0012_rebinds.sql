-- PostgreSQL clusters that became other ones, by pg_upgrade or a restore: `rebind` says it once, and whoever opens the server next
-- takes the row up and deletes it.
create table control.rebinds (
    from_cluster  text primary key,
    to_cluster    text not null check (to_cluster <> from_cluster),
    said_at       timestamptz not null default now()
);
