//! Connections kept between passes: to open one costs more than what a small change does with it.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rowgate_pg::connect::login::{Endpoint, Login};
use rowgate_pg::connect::session;
use rowgate_pg::failure::PgError;
use sqlx::PgConnection;
use tokio::time::Instant;

/// Of the operator, and of owners and keys logins of the tenants that were passed over last.
const MAX_CONNECTIONS: usize = 48;
/// A tenant that nothing happens to holds none.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The idle connections, the most recently used one at the end.
#[derive(Default)]
pub(crate) struct ConnectionCache(Mutex<Vec<Idle>>);

struct Idle {
    endpoint: Endpoint,
    role: String,
    database: String,
    since: Instant,
    conn: PgConnection,
}

impl ConnectionCache {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.0.lock()
    }

    /// A connection of `login`, which is as a new one: nothing of what was set in it before is left.
    pub(crate) async fn connect(&self, login: &Login) -> Result<PgConnection, PgError> {
        while let Some(mut conn) = self.take(login) {
            // one that the server has ended meanwhile is no reason to fail
            if session::renew(&mut conn).await.is_ok() {
                return Ok(conn);
            }
        }
        session::connect(login).await
    }

    /// As [`ConnectionCache::connect`], with the password: those kept show nothing of whether it still holds.
    pub(crate) async fn connect_fresh(&self, login: &Login) -> Result<PgConnection, PgError> {
        while self.take(login).is_some() {}
        session::connect(login).await
    }

    fn take(&self, login: &Login) -> Option<PgConnection> {
        let mut idle = self.idle();
        let is_its = |it: &Idle| {
            it.role == login.role && it.database == login.database && it.endpoint == login.endpoint
        };
        let at = idle.iter().rposition(is_its)?;
        Some(idle.remove(at).conn)
    }

    /// Keeps a connection that was left in good order.
    pub(crate) fn keep(&self, login: Login, conn: PgConnection) {
        let Login { endpoint, role, database, .. } = login;
        let mut idle = self.idle();
        idle.push(Idle { endpoint, role, database, since: Instant::now(), conn });
        if MAX_CONNECTIONS < idle.len() {
            idle.remove(0);
        }
    }

    /// Closes connections that were idle for [`IDLE_TIMEOUT`].
    pub(crate) fn tidy(&self) {
        self.idle().retain(|it| it.since.elapsed() < IDLE_TIMEOUT);
    }
}
