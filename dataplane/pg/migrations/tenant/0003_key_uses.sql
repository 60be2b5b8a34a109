-- It stands in control.key_uses: a tenant's own code could have written it here.
alter table dl.keys drop column last_used_at;
