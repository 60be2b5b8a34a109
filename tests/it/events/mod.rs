//! `GET /api/ddl/events`: row changes, from the transaction that makes them to those who may see them.

mod capture;
mod fixture;
mod ledger;
mod requests;
mod visibility;
