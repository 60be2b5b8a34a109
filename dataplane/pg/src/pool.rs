//! A few connections shared by look-ups that are not the hot path. None is open before the first is asked for.

use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
pub use sqlx::{PgConnection, PgPool};

use crate::login::Login;
use crate::session;

/// For a free connection, opened or waited for.
const WAIT: Duration = Duration::from_secs(5);
/// An idle tenant holds no connection.
const IDLE: Duration = Duration::from_secs(60);

/// At most `size` connections as `login`. Called within a tokio runtime.
#[must_use]
pub fn lazy(login: &Login, size: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(WAIT)
        .idle_timeout(IDLE)
        .connect_lazy_with(session::options(login))
}
