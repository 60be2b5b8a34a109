//! The compiler: untrusted requests and desired rights become SQL text and binds. Pure; the only place where SQL
//! text is made from anything but a literal.
//!
//! [`rest`] (text to [`request`]) → [`resolve`] (names to references) → [`query`] (the IR) → [`compile`] → [`text::Sql`].
//! A SELECT that a caller wrote takes its own way: [`user_select`] checks it, [`for_json`] translates a payloadQuery,
//! [`sql_request`] reads what the SQL endpoint is asked, [`export_request`] what an export is.

pub mod aggregates;
pub mod catalog;
pub mod compile;
pub mod ddl;
pub mod export_request;
pub mod for_json;
pub mod graphql_names;
pub mod query;
pub mod request;
pub mod resolve;
pub mod rest;
pub mod shape;
pub mod sql_request;
pub mod text;
pub mod user_select;

#[cfg(test)]
mod tests;
