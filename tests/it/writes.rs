//! Rows made and deleted over HTTP, under the key's own grants and policies.

mod fixture;
mod refused;
mod rows;
mod upserts;
mod values;
