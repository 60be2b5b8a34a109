-- Who reconciles: whoever took the epoch last. Every transaction of the operator's login asks the fence first, so that a
-- reconciler that slept while another one took over changes nothing.
create table control.leader (
    one           boolean primary key default true check (one),
    epoch         bigint not null default 0
);
insert into control.leader default values;

create function control.fence(wanted bigint) returns void
    language plpgsql volatile
    set search_path = ''
    as $$
    declare
        present bigint;
    begin
        select epoch into present from control.leader for share;
        if present > wanted then
            raise exception 'this reconciler was replaced (epoch % is newer than %)', present, wanted using errcode = 'RG001';
        end if;
    end
    $$;
revoke all on function control.fence from public;
