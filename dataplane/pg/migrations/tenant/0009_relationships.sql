-- Ways from rows of one entity to rows of another, as the data plane follows them.
create table dl.relationships (
    -- where the way starts, and what it is called beside the fields of that entity
    entity        text not null,
    name          text not null,
    definition    jsonb not null,
    primary key (entity, name)
);
