//! What the end-to-end tests stand on: real PostgreSQL servers, real processes, and folders that never stay behind.

pub mod asked;
pub mod client;
pub mod cluster;
pub mod data_plane;
pub mod messages;
pub mod operator;
pub mod pooler;
pub mod postgres;
pub mod reconciler;
pub mod recorder;
pub mod scratch;
pub mod shop;
pub mod stage;
pub mod steps;
pub mod sweep;
pub mod tls;
pub mod wait;
pub mod world;
