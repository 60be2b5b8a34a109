//! Rowgate beside PostgreSQL: its wire client, the control database, catalogs that follow DDL, the server that it starts.

mod control;
mod ddl;
mod launcher;
pub(crate) mod wire;
