//! The request pool of one tenant: a bounded pool of connections as `t<id>_auth`, and the queue before it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use super::ask::{Ask, Asked, Operation, ReadPage, WriteOutcome};
use super::budget::{Purpose, Share};
use super::connection::Connection;
use super::connection::connect::{self, connect};
use super::connection::transport::Socket;
use super::counters::Counters;
use super::exchange::ExchangeHandle;
use super::failure::{Failure, WriteFailure};
use super::pool::{NoSlot, Pool, Who};
use super::request_pool::outage::Outage;
use crate::connect::login::Login;
use crate::connect::login_failure::LoginFailure;
use crate::tenant::keys::Found;

pub(crate) mod outage;
#[cfg(test)]
mod tests;

/// Who is at the other end of a pool's connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sessions {
    /// PostgreSQL: a connection is a session, which keeps the statements that were prepared in it.
    #[default]
    Own,
    /// A pooler such as PgBouncer with `pool_mode = transaction`: each transaction meets any session of the same role and
    /// database, so that nothing is prepared beforehand and nothing is taken for granted.
    Pooled,
}

/// How many connections a pool has and to whom, and how long it waits for what.
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

/// How busy a pool is.
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
pub struct RequestPool {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) login: Login,
    pub(super) limits: Limits,
    pub(super) slots: Pool<Connection<Socket>>,
    pub(super) counters: Counters,
    pub(super) outage: Outage<LoginFailure>,
    pub(super) exchanges: TaskTracker,
}

/// How long requests wait, unless they are told otherwise.
pub(super) const WAIT: Duration = Duration::from_secs(5);

impl Limits {
    /// `size` connections to PostgreSQL itself, `queue` requests that wait, and waiting times of 5 seconds.
    #[must_use]
    pub fn new(size: usize, queue: usize) -> Limits {
        Limits { size, queue, wait: WAIT, connect: WAIT, grace: WAIT, sessions: Sessions::Own }
    }
}

impl Shared {
    /// A new connection. While none can be made most are refused at once. `answers`: see [`connect()`].
    pub(super) async fn open(&self, answers: bool) -> Result<Connection<Socket>, LoginFailure> {
        let Shared { login, limits, outage, counters, .. } = self;
        let attempt = outage.attempt(Instant::now())?;
        // a pooler that lets clients in does not mend what is behind it
        let answers = answers || attempt.is_alone();
        let opened = match timeout(limits.connect, connect(login, limits.sessions, answers)).await {
            Ok(opened) => opened,
            Err(_) => Err(connect::late(login, limits.sessions)),
        };
        counters.note_connect(opened.is_ok());
        match &opened {
            Ok(_) => attempt.succeeded(),
            Err(failure) => attempt.failed(Instant::now(), failure),
        }
        opened
    }

    fn unavailable(&self, why: NoSlot) -> Failure {
        let Limits { size, queue, .. } = self.limits;
        match why {
            NoSlot::Closed => Failure::NoConnection("the pool is closed".to_owned()),
            NoSlot::Full => Failure::Busy(format!("{queue} requests are waiting for a connection already")),
            NoSlot::Late => Failure::Busy(format!("none of the {size} connections became free in time")),
        }
    }
}

impl RequestPool {
    /// A pool of at most `size` connections, none of which is opened yet.
    #[must_use]
    pub fn new(login: Login, size: usize) -> RequestPool {
        RequestPool::with_limits(login, Limits::new(size, 256))
    }

    /// A pool with these limits, at a server that takes any number of connections.
    #[must_use]
    pub fn with_limits(login: Login, limits: Limits) -> RequestPool {
        RequestPool::of(login, limits, &Share::unbounded())
    }

    /// A pool with these limits, whose connections are among those of `share`.
    #[must_use]
    pub fn of(login: Login, limits: Limits, share: &Share) -> RequestPool {
        RequestPool {
            shared: Arc::new(Shared {
                login,
                limits,
                slots: Pool::new(limits.size, limits.queue, share, Purpose::Request),
                counters: Counters::default(),
                outage: Outage::default(),
                exchanges: TaskTracker::new(),
            }),
        }
    }

    /// Reads in a task of its own, which owns the connection and outlives a caller that no longer waits: a half-read
    /// connection never meets another caller. Of the rows as many as `take` are written; the statement may give more.
    pub async fn read(&self, ask: Ask, take: usize) -> Result<ReadPage, Failure> {
        let ask = Asked::new(ask, Operation::Read { take });
        let slot = self.shared.slots.take(ask.who(), self.shared.limits.wait).await;
        let slot = slot.map_err(|why| self.shared.unavailable(why))?;
        ExchangeHandle::start(&self.shared, slot, |exchange| exchange.read(ask)).answer().await
    }

    /// As [`RequestPool::read`], of a statement that writes. It runs at most once, and only as the role and with the tables
    /// that it was made for; where its answer was lost it is not asked again.
    pub async fn write(&self, ask: Ask) -> Result<WriteOutcome, WriteFailure> {
        let ask = Asked::new(ask, Operation::Write);
        let slot = self.shared.slots.take(ask.who(), self.shared.limits.wait).await;
        let slot = slot.map_err(|why| self.shared.unavailable(why))?;
        ExchangeHandle::start(&self.shared, slot, |exchange| exchange.write(ask)).answer().await
    }

    /// Opens a connection and keeps it for whoever asks next, unless one is open and none has failed to open since. Where all are
    /// in use nothing has to be opened.
    pub async fn check(&self) {
        let load = self.load();
        if self.failing().is_none() && 0 < load.in_use + load.idle {
            return;
        }
        if load.in_use == load.size {
            return;
        }
        let slot = self.shared.slots.take(Who::default(), self.shared.limits.wait).await;
        let Ok(mut slot) = slot else { return };
        drop(slot.connection());
        let shared = self.shared.clone();
        let opening = self.shared.exchanges.spawn(async move {
            if let Ok(connection) = shared.open(true).await {
                slot.give_back(connection);
            }
        });
        let _its_end_is_enough = opening.await;
    }

    /// Why the last connection could not be opened, and how long this has been so. `None`: it could, or none was wanted yet.
    #[must_use]
    pub fn failing(&self) -> Option<(LoginFailure, Duration)> {
        self.shared.outage.failing()
    }

    /// What it does at this moment.
    #[must_use]
    pub fn load(&self) -> Load {
        let size = self.shared.limits.size;
        let (n_free, idle, waiting) = self.shared.slots.load();
        Load { size, in_use: size - n_free, idle, waiting }
    }

    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// The keys that exchanges have run for, for `age` or longer, each once.
    #[must_use]
    pub fn keys(&self, age: Duration) -> Vec<Arc<Found>> {
        self.shared.slots.keys(age)
    }

    /// Ends the exchanges of keys that died: what was not answered fails with [`Failure::Ended`], an answer on its way breaks off,
    /// and the database is told to stop. Says how many those were.
    pub fn end(&self, is_dead: impl Fn(&Found) -> bool) -> usize {
        self.shared.slots.stop(is_dead)
    }

    /// Closes the connections that nobody has used for `age`; to be called now and then.
    pub fn trim(&self, age: Duration) {
        self.shared.slots.trim(age);
    }

    /// Waits for running exchanges and closes all connections; nothing is answered any more.
    pub async fn close(&self) {
        self.shared.slots.close();
        self.shared.exchanges.close();
        self.shared.exchanges.wait().await;
    }
}
