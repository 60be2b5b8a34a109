//! Lane A of one tenant: a bounded pool of connections as `t<id>_auth`, and the queue before it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use super::ask::{Ask, Page};
use super::connection::Connection;
use super::dial::Socket;
use super::failure::Failure;
use super::outage::Outage;
use super::seat::Waiting;
use crate::login::Login;

#[cfg(test)]
mod tests;

/// Who is at the other end of a lane's connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sessions {
    /// PostgreSQL: a connection is a session, which keeps the statements that were prepared in it.
    #[default]
    Own,
    /// A pooler such as PgBouncer with `pool_mode = transaction`: each transaction meets any session of the same role and
    /// database, so that nothing is prepared beforehand and nothing is taken for granted.
    Pooled,
}

/// How many connections a lane has and to whom, and how long it waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at most.
    pub size: usize,
    /// Requests at most that wait for one of them; whoever comes beyond is refused at once.
    pub queue: usize,
    /// For a connection to become free.
    pub wait: Duration,
    /// For the server to accept a new connection.
    pub connect: Duration,
    /// Beyond the statement timeout, for the answer.
    pub grace: Duration,
    pub sessions: Sessions,
}

/// How busy a lane is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Connections at most.
    pub size: usize,
    /// Connections in an exchange, or being opened for one.
    pub in_use: usize,
    /// Open connections that nobody uses.
    pub idle: usize,
    /// Requests that wait for a connection.
    pub waiting: usize,
}

/// A cheap handle; clones share the pool.
#[derive(Clone)]
pub struct Lane {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) login: Login,
    pub(super) limits: Limits,
    /// One permit for each connection that may exist in use.
    permits: Arc<Semaphore>,
    /// How many wait for a permit.
    n_waiting: AtomicUsize,
    /// See [`Lane::n_abandoned`].
    pub(super) n_abandoned: AtomicU64,
    pub(super) outage: Outage,
    pub(super) n_opened: AtomicU64,
    pub(super) n_unopened: AtomicU64,
    /// Connections between exchanges. The last one used is the first taken, so that a quiet lane keeps few warm.
    idle: Mutex<Vec<Idle>>,
    pub(super) exchanges: TaskTracker,
}

struct Idle {
    since: Instant,
    connection: Connection<Socket>,
}

/// A place in the queue, given up when it is dropped.
struct Queued<'a>(&'a AtomicUsize);

impl Limits {
    /// `size` connections to PostgreSQL itself, `queue` requests that wait, and waiting times of 5 seconds.
    #[must_use]
    pub fn new(size: usize, queue: usize) -> Limits {
        let wait = Duration::from_secs(5);
        Limits { size, queue, wait, connect: wait, grace: wait, sessions: Sessions::Own }
    }
}

impl Lane {
    /// A lane of at most `size` connections, none of which is opened yet.
    #[must_use]
    pub fn new(login: Login, size: usize) -> Lane {
        Lane::with_limits(login, Limits::new(size, 256))
    }

    /// A lane with these limits.
    #[must_use]
    pub fn with_limits(login: Login, limits: Limits) -> Lane {
        let permits = Arc::new(Semaphore::new(limits.size));
        let (idle, exchanges) = (Mutex::default(), TaskTracker::new());
        Lane {
            shared: Arc::new(Shared {
                login,
                limits,
                permits,
                n_waiting: AtomicUsize::new(0),
                n_abandoned: AtomicU64::new(0),
                outage: Outage::default(),
                n_opened: AtomicU64::new(0),
                n_unopened: AtomicU64::new(0),
                idle,
                exchanges,
            }),
        }
    }

    /// Asks in a task of its own, which owns the connection and outlives a caller that no longer waits: a half-read
    /// connection never meets another caller.
    pub async fn read(&self, ask: Ask) -> Result<Page, Failure> {
        let permit = self.shared.permit().await?;
        Waiting::start(&self.shared, ask, permit).answer().await
    }

    /// What it does at this moment.
    #[must_use]
    pub fn load(&self) -> Load {
        let Shared { limits, permits, n_waiting, .. } = &*self.shared;
        let in_use = limits.size - permits.available_permits().min(limits.size);
        let (idle, waiting) = (self.shared.idle().len(), n_waiting.load(Ordering::Relaxed));
        Load { size: limits.size, in_use, idle, waiting }
    }

    /// How many exchanges there were whose caller went away while they ran.
    #[must_use]
    pub fn n_abandoned(&self) -> u64 {
        self.shared.n_abandoned.load(Ordering::Relaxed)
    }

    /// How many connections were opened, and how many tries failed.
    #[must_use]
    pub fn n_connects(&self) -> (u64, u64) {
        let Shared { n_opened, n_unopened, .. } = &*self.shared;
        (n_opened.load(Ordering::Relaxed), n_unopened.load(Ordering::Relaxed))
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
    /// A free connection's permit at once, or a place in the queue for one.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let closed = || Failure::Unavailable("the lane is closed".to_owned());
        // It gives nothing away while others wait.
        match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => return Ok(permit),
            Err(TryAcquireError::Closed) => return Err(closed()),
            Err(TryAcquireError::NoPermits) => {}
        }
        let _place = self.queue()?;
        match timeout(self.limits.wait, Arc::clone(&self.permits).acquire_owned()).await {
            Ok(permit) => permit.map_err(|_| closed()),
            Err(_) => {
                Err(Failure::Busy(format!("none of {} connections became free in time", self.limits.size)))
            }
        }
    }

    fn queue(&self) -> Result<Queued<'_>, Failure> {
        let place = Queued(&self.n_waiting);
        match self.n_waiting.fetch_add(1, Ordering::Relaxed) < self.limits.queue {
            true => Ok(place),
            false => {
                Err(Failure::Busy(format!("{} requests wait for a connection already", self.limits.queue)))
            }
        }
    }

    /// The connection used last, if one is idle.
    pub(super) fn take(&self) -> Option<Connection<Socket>> {
        Some(self.idle().pop()?.connection)
    }

    /// Takes back a connection that is between two exchanges.
    pub(super) fn put_back(&self, connection: Connection<Socket>) {
        self.idle().push(Idle { since: Instant::now(), connection });
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        // A push or a pop leaves the list whole.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
