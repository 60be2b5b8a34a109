-- Why a replica cannot open a connection for a tenant's requests, as rowgate_pg::login_failure writes it. Null: it can, or it is
-- older than this column and does not say. Where it has no catalog either, the generation is 0.
alter table control.served add column login_failure text;
