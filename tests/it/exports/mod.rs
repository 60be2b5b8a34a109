//! Exports: what keys ask for, as files that are whole, theirs alone, and gone with them.

mod cli;
mod crash;
mod events;
mod fixture;
mod formats;
mod keys;
mod links;
mod objects;
mod parquet;
mod queue;
mod random;
mod refusals;
