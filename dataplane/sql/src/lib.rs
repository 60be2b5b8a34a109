//! The compiler: untrusted requests and desired rights become SQL text and binds. Pure; the only place where SQL
//! text is made from anything but a literal.
//!
//! [`rest`] (text to [`request`]) → [`resolve`] (names to references) → [`query`] (the IR) → [`compile`] → [`text::Sql`].

pub mod aggregates;
pub mod catalog;
pub mod compile;
pub mod ddl;
pub mod graphql_names;
pub mod query;
pub mod request;
pub mod resolve;
pub mod rest;
pub mod shape;
pub mod text;

#[cfg(test)]
mod tests;
