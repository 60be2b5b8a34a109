-- The generations of the key that signs tokens. Keys are derived; here stands only when each begins to sign.
create table control.signing_keys (
    generation    integer primary key check (0 < generation),
    created_at    timestamptz not null default now(),
    -- an hour in which every replica publishes it and whoever keeps our public keys fetches it: rowgate_core::signing
    signs_from    timestamptz not null default now() + interval '1 hour'
);
insert into control.signing_keys (generation, signs_from) values (1, 'epoch');

-- when it signs is not the data plane's to say
grant select on control.signing_keys to rowgate_dataplane;
grant insert (generation) on control.signing_keys to rowgate_dataplane;
