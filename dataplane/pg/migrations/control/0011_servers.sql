-- PostgreSQL clusters of tenants beside the one of this control database. A cluster is known by its system identifier, from which
-- the passwords of all its roles derive; its address and authorities are as the Secret said that named it last.
create table control.servers (
    system_identifier text primary key,
    -- of that Secret
    namespace         text not null,
    secret            text not null,
    -- a host that starts with a slash is the folder of a socket
    host              text not null,
    port              integer not null,
    -- false: a server on the same machine, met without TLS
    tls               boolean not null,
    -- the certificate authorities that vouch for it, in PEM; null: those of the system
    authorities       text
);

-- null: the cluster of this control database. The name of a database is taken in one cluster.
alter table control.tenants add column cluster text references control.servers on update cascade;
alter table control.tenants drop constraint tenants_database_key;
create unique index tenants_database_key on control.tenants (coalesce(cluster, ''), database);

grant select on control.servers to rowgate_dataplane;
