//! `GET /api/ddl/events`: row changes, from the transaction that makes them to those who may see them.

mod capture;
mod clients;
mod fixture;
mod ledger;
mod requests;
mod stream;
mod subscription;
mod visibility;
