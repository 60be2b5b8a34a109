//! REST as a surface: the query string, the body and the address of a request become a [`crate::request`], and what the
//! stages behind refuse becomes a problem, in words that only a client of REST knows.

mod address;
pub mod body;
mod door;
pub mod filter;
pub mod problem;
pub mod query_string;

pub use address::{allowed, key_path};
pub use door::{call, collection, delete, insert, may_call, may_insert, may_upsert, row, upsert};
pub use problem::{absent, not_found, unguarded};
