-- Looks for events go by the indexes of the log whatever its statistics say: it has none in the first minute of a day, and PostgreSQL then takes a third
-- of the rows for new ones and reads all of them, at each look of each reader.
alter function dl.has_news(pg_snapshot, pg_snapshot) set enable_seqscan = off;
alter function dl.events(bigint, bigint, oid[], text[], integer) set enable_seqscan = off;
alter function dl.pending(text, bigint, bigint, oid[], text[], integer) set enable_seqscan = off;
alter function dl.changed(bigint, bigint) set enable_seqscan = off;
alter function dl.last_tick_of(date, date) set enable_seqscan = off;
