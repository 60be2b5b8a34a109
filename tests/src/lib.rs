//! What the end-to-end tests stand on: real PostgreSQL servers, real processes, and folders that never stay behind.

pub mod asked;
pub mod client;
pub mod messages;
pub mod scratch;
pub mod servers;
pub mod shop;
pub mod stage;
pub mod steps;
pub mod sweep;
pub mod wait;
pub mod world;
