//! A few connections shared by look-ups that are not the hot path. None is open before the first is asked for.

use std::sync::Arc;
use std::time::Duration;

pub use sqlx::PgConnection;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgPoolOptions, Postgres};

use crate::failure::PgError;
use crate::gate::Gate;
use crate::login::Login;
use crate::session;

/// For a free connection, opened or waited for.
const WAIT: Duration = Duration::from_secs(5);
/// An idle tenant holds no connection.
const IDLE: Duration = Duration::from_secs(60);

/// A cheap handle; clones share the connections.
#[derive(Debug, Clone)]
pub struct PgPool {
    pool: sqlx::PgPool,
    /// The way to a tenant's database; it is open as long as the pool is.
    _gate: Option<Arc<Gate>>,
}

/// At most `size` connections as `login`. Called within a tokio runtime.
#[must_use]
pub fn lazy(login: &Login, size: u32) -> PgPool {
    let options = PgPoolOptions::new().max_connections(size).acquire_timeout(WAIT).idle_timeout(IDLE);
    let gate = session::gate(login);
    let (through, gate) = match gate {
        Some(Ok(gate)) => (gate.through(session::options(login)), Some(Arc::new(gate))),
        // without descriptors there are no connections either: the first that is asked for says so
        Some(Err(_)) | None => (session::options(login), None),
    };
    PgPool { pool: options.connect_lazy_with(through), _gate: gate }
}

impl PgPool {
    pub async fn acquire(&self) -> Result<PoolConnection<Postgres>, PgError> {
        Ok(self.pool.acquire().await?)
    }

    /// Closes the connections, and waits for those that are in use.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}
