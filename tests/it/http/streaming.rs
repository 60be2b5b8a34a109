//! Long answers, and clients and statements that do not end by themselves, through HTTP; `pg_stat_activity` is witness.

mod broken;
mod clients;
mod fixture;
mod observed;
mod queue;
mod raw;
mod stopped;
mod whole;
