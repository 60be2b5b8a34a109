//! GraphQL over HTTP: the rows that PostgreSQL gives to the key's role, and what public clients make of it.

mod budget;
mod clients;
mod fixture;
mod mutations;
mod names;
mod random;
mod reads;
mod refusals;
mod schemas;
