//! Rows made and deleted over HTTP, under the key's own grants and policies.

mod details;
mod fixture;
mod hidden;
mod outages;
mod protected;
mod racing;
mod refused;
mod rows;
mod tags;
mod upserts;
mod values;
mod vault;
