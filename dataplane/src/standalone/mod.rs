//! Everything in one process for a newcomer and for tests: PostgreSQL, reconciling a folder, serving.

pub mod database_url;
pub mod lock;
pub mod postgres;
pub mod roots;
