-- Which secret of the same key each one follows: that one goes on working until its expires_at, every other is revoked.
alter table dl.key_secrets add column replaces text references dl.key_secrets;

-- a digest of the annotation rowgate.dev/rotate for which a secret was made
alter table dl.keys add column rotated_for text;
