-- The scripts of `bootstrap.scripts` that ran, by their place in the list. Each is written in the transaction in which it ran as the owner of the
-- tables; the first may have run before, as the only one.
create table if not exists dl.scripts (
    number    integer primary key check (0 < number),
    -- of the ConfigMap, as it was named then
    name      text not null,
    key       text not null,
    -- of its text, in hexadecimal digits
    sha256    text not null,
    ran_at    timestamptz not null default pg_catalog.clock_timestamp()
);
