//! What tests talk to: PostgreSQL, PgBouncer, a Kubernetes API server, and our own programs as processes.

pub mod cluster;
pub mod data_plane;
pub mod operator;
pub mod pooler;
pub mod ports;
pub mod postgres;
pub mod receiver;
pub mod reconciler;
pub mod recorder;
pub mod setup;
pub mod tls;
