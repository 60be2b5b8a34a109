-- Looks for events go by the indexes of the log whatever its statistics say: it has none in the first minute of a day, and PostgreSQL then takes a third
-- of the rows for new ones and reads all of them, at each look of each reader. Where a table has no index that fits, PostgreSQL 16 and 17 think the scan so
-- dear that they would compile it at each call. A function that is made again needs both settings again.
alter function dl.has_news(pg_snapshot, pg_snapshot) set enable_seqscan = off;
alter function dl.has_news(pg_snapshot, pg_snapshot) set jit = off;
alter function dl.events(bigint, bigint, oid[], text[], integer) set enable_seqscan = off;
alter function dl.events(bigint, bigint, oid[], text[], integer) set jit = off;
alter function dl.pending(text, bigint, bigint, oid[], text[], integer) set enable_seqscan = off;
alter function dl.pending(text, bigint, bigint, oid[], text[], integer) set jit = off;
alter function dl.changed(bigint, bigint) set enable_seqscan = off;
alter function dl.changed(bigint, bigint) set jit = off;
alter function dl.last_tick_of(date, date) set enable_seqscan = off;
alter function dl.last_tick_of(date, date) set jit = off;
