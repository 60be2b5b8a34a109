-- Of the tables that a replica's catalog was read from: another one at the same generation says that somebody changed
-- them by hand. It wakes reconciling, which looks for itself.
alter table control.served add column fingerprint bigint;
