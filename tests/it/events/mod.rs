//! `GET /api/ddl/events`: row changes, from the transaction that makes them to those who may see them.

mod capture;
mod clients;
mod failover;
mod fixture;
mod ledger;
mod replication;
mod requests;
mod retention;
mod stream;
mod subscription;
mod visibility;
