//! Lane A of one tenant: a bounded pool of connections as `t<id>_auth`, and the task of each exchange.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use super::ask::{Ask, Page};
use super::connect::{Socket, connect};
use super::connection::{Broken, Connection};
use super::failure::{Cause, Failure};
use crate::login::Login;

/// How many connections a lane has, and how long it waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at most.
    pub size: usize,
    /// For a connection to become free.
    pub wait: Duration,
    /// For the server to accept a new connection.
    pub connect: Duration,
    /// Beyond the statement timeout, for the answer.
    pub grace: Duration,
}

/// A cheap handle; clones share the pool.
#[derive(Clone)]
pub struct Lane {
    shared: Arc<Shared>,
}

struct Shared {
    login: Login,
    limits: Limits,
    /// One permit for each connection that may exist in use.
    permits: Arc<Semaphore>,
    /// Connections between exchanges. The last one used is the first taken, so that a quiet lane keeps few warm.
    idle: Mutex<Vec<Idle>>,
    exchanges: TaskTracker,
}

struct Idle {
    since: Instant,
    connection: Connection<Socket>,
}

impl Lane {
    /// A lane of at most `size` connections, none of which is opened yet.
    #[must_use]
    pub fn new(login: Login, size: usize) -> Lane {
        let wait = Duration::from_secs(5);
        Lane::with_limits(login, Limits { size, wait, connect: wait, grace: wait })
    }

    /// A lane with other waiting times than 5 seconds.
    #[must_use]
    pub fn with_limits(login: Login, limits: Limits) -> Lane {
        let permits = Arc::new(Semaphore::new(limits.size));
        let (idle, exchanges) = (Mutex::default(), TaskTracker::new());
        Lane { shared: Arc::new(Shared { login, limits, permits, idle, exchanges }) }
    }

    /// Asks in a task of its own, which owns the connection and outlives a caller that no longer waits: a half-read
    /// connection never meets another caller.
    pub async fn read(&self, ask: Ask) -> Result<Page, Failure> {
        let permits = Arc::clone(&self.shared.permits);
        let permit = match timeout(self.shared.limits.wait, permits.acquire_owned()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(Failure::Unavailable("the lane is closed".to_owned())),
            Err(_) => {
                let text = format!("none of {} connections became free in time", self.shared.limits.size);
                return Err(Failure::Unavailable(text));
            }
        };
        let shared = Arc::clone(&self.shared);
        let exchange = self.shared.exchanges.spawn(async move { shared.read(ask, permit).await });
        match exchange.await {
            Ok(answer) => answer,
            Err(error) => Err(Failure::Internal(Cause::ours(format!("an exchange ended: {error}")))),
        }
    }

    /// Closes the connections that nobody has used for `age`; to be called now and then.
    pub fn trim(&self, age: Duration) {
        self.shared.idle().retain(|idle| idle.since.elapsed() < age);
    }

    /// Waits for running exchanges and closes all connections; nothing is answered any more.
    pub async fn close(&self) {
        self.shared.permits.close();
        self.shared.exchanges.close();
        self.shared.exchanges.wait().await;
        self.shared.idle().clear();
    }
}

impl Shared {
    /// A connection that broke before its key statement was through may have been stale, or tenant code spoilt its
    /// session: nothing of the question has run, so it is asked once more on a new one.
    async fn read(&self, ask: Ask, _permit: OwnedSemaphorePermit) -> Result<Page, Failure> {
        let pooled = self.idle().pop();
        if let Some(Idle { connection, .. }) = pooled {
            match self.exchange(connection, &ask).await {
                Err(Broken { failure, before_key: true }) => {
                    tracing::debug!(?failure, lane = ?self.login, "asking again on a new connection");
                }
                Err(Broken { failure, .. }) => return Err(failure),
                Ok(answer) => return answer,
            }
        }
        let connection = match timeout(self.limits.connect, connect(&self.login)).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(Failure::Unavailable(error.to_string())),
            Err(_) => {
                return Err(Failure::Unavailable(
                    "PostgreSQL did not accept a connection in time".to_owned(),
                ));
            }
        };
        self.exchange(connection, &ask).await.unwrap_or_else(|broken| Err(broken.failure))
    }

    /// Takes the connection, and puts it back only when its exchange came to its proper end.
    async fn exchange(
        &self,
        mut connection: Connection<Socket>,
        ask: &Ask,
    ) -> Result<Result<Page, Failure>, Broken> {
        let deadline = Duration::from_millis(ask.statement_timeout_ms.into()) + self.limits.grace;
        match timeout(deadline, connection.exchange(ask)).await {
            Ok(Ok(answer)) => {
                self.idle().push(Idle { since: Instant::now(), connection });
                Ok(answer)
            }
            Ok(Err(broken)) => Err(broken),
            Err(_) => Err(Broken { failure: Failure::Timeout, before_key: false }),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        // A push or a pop leaves the list whole.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
