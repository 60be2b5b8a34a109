-- In which tenants' databases a replica has sessions that run calls (lane C), so that others look there for calls of dead keys:
-- the replica itself may be stopped or cut off. Its rows go with its own.
create table control.calling (
    replica       text not null references control.replicas on delete cascade,
    tenant        text not null,
    primary key (replica, tenant)
);
grant select, insert, delete on control.calling to rowgate_dataplane;
