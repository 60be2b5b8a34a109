-- When each key was last used. Written by the data planes here, where no SQL of a caller or of a tenant can come.
create table control.key_uses (
    tenant        text not null,
    key           text not null,
    used_at       timestamptz not null,
    primary key (tenant, key)
);
grant select, insert, update (used_at) on control.key_uses to rowgate_dataplane;
