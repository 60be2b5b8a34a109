-- What authenticates: each secret that neither it nor its key is revoked or expired, by now() of the transaction. Who asks
-- for keys reads this and not the tables; and a statement over it is short, which counts where it is sent for each request.
create view dl.live as
    select s.digest, s.id as secret, k.id, k.role, k.set_role, least(k.expires_at, s.expires_at) as expires_at
    from dl.key_secrets s
    join dl.keys k on k.id = s.key_id
    where s.revoked_at is null and k.revoked_at is null
    -- of two times one may be null; where both are it lives on
    and coalesce(least(k.expires_at, s.expires_at) > now(), true);

-- Every request looks a secret up by its digest and a claim by its role. In full pages a few hundred rows are so few that
-- PostgreSQL reads and compares them all (256 of them: 20 µs) rather than use the index (3 µs). Rows that are spread over
-- more pages make it take the index from about forty on.
alter table dl.key_secrets set (fillfactor = 10);
alter table dl.claims set (fillfactor = 10);
