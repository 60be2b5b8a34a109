//! Calls of routines of one tenant, each in a session that is logged in as the key's own role. Tenant code runs there
//! that may do what it wants with its session, and even end transactions.

use std::sync::Arc;
use std::time::Duration;

use rowgate_core::name::Ulid;
use rowgate_sql::shape::Shape;
use rowgate_sql::text::Sql;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::KeySessions;
use super::key_queue::KeyQueue;
use crate::wire::ask::Ask;
use crate::wire::counters::Counters;
use crate::wire::failure::{CallFailure, Cause, Failure};
use crate::wire::pool::NoSlot;
use crate::wire::request_pool::Load;

mod task;

/// One call in the name of one API key.
#[derive(Debug, Clone)]
pub struct Call {
    pub key: Ulid,
    /// What the key is in the database: `datalake_user`, or its own role.
    pub role: String,
    /// Of the catalog that `sql` was compiled for.
    pub generation: i64,
    /// From 1 to `i32::MAX`; anything else is taken as the nearest of these.
    pub statement_timeout_ms: u32,
    pub sql: Sql,
    pub shape: Arc<Shape>,
    /// False: rows that it gives are read and not told.
    pub keeps_rows: bool,
}

/// What a call gave, once all of it was committed.
#[derive(Debug)]
pub struct CallOutcome {
    /// JSON objects joined by commas, without brackets around them.
    pub json: Vec<u8>,
    pub n_rows: usize,
}

/// How many sessions there are for calls, and how long is waited for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Sessions, and calls at once, at most; of one key one less.
    pub size: usize,
    /// Calls at most that wait for one of them, half of them of one key; whoever comes beyond is refused at once.
    pub queue: usize,
    /// For the call to begin.
    pub wait: Duration,
    /// Beyond the statement timeout: a routine that traps it is ended then.
    pub grace: Duration,
}

/// A cheap handle; clones share the sessions.
#[derive(Clone)]
pub struct Calls {
    shared: Arc<Shared>,
}

struct Shared {
    sessions: KeySessions,
    limits: CallLimits,
    queue: KeyQueue,
    tasks: TaskTracker,
}

impl CallLimits {
    /// `size` calls at once, `queue` that wait, and waiting times of 5 seconds; 2 for a routine that traps its end.
    #[must_use]
    pub fn new(size: usize, queue: usize) -> CallLimits {
        let wait = Duration::from_secs(5);
        CallLimits { size, queue, wait, grace: Duration::from_secs(2) }
    }
}

impl Calls {
    /// In sessions that queries may use too.
    #[must_use]
    pub fn new(sessions: KeySessions, limits: CallLimits) -> Calls {
        let queue = KeyQueue::new(limits.size, limits.queue);
        Calls { shared: Arc::new(Shared { sessions, limits, queue, tasks: TaskTracker::new() }) }
    }

    /// Calls at most once. `check` asks the request pool for the key alone, right before. Nothing was done where it fails with
    /// [`Failure::Changed`], [`Failure::DeadKey`], [`Failure::WrongRole`], [`CallFailure::NoLogin`], [`Failure::Denied`],
    /// [`Failure::Invalid`], [`Failure::Busy`] or [`Failure::Unavailable`]; after any other, never call again.
    ///
    /// It runs in a task of its own, which owns the session. One that nobody waits for any more has a second to end.
    pub async fn call(&self, check: Ask, call: Call) -> Result<CallOutcome, CallFailure> {
        let CallLimits { queue, wait, .. } = self.shared.limits;
        let permit = self.shared.queue.take(&call.key, wait).await.map_err(|why| match why {
            NoSlot::Full => {
                Failure::Busy(format!("{queue} calls are waiting already, or half as many of this key"))
            }
            NoSlot::Late | NoSlot::Closed => Failure::Busy("no running call ended in time".to_owned()),
        })?;
        let (sender, receiver) = oneshot::channel();
        let shared = self.shared.clone();
        self.shared.tasks.spawn(task::run(shared, permit, check, call, sender));
        let ended = |_| Failure::Internal(Cause::ours("the task of a call ended")).into();
        receiver.await.map_err(ended).and_then(|answer| answer)
    }

    /// Whether a session is open, or was a moment ago.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        0 < self.shared.queue.load().0 || 0 < self.shared.sessions.n_idle()
    }

    /// What it does at this moment.
    #[must_use]
    pub fn load(&self) -> Load {
        let (in_use, waiting) = self.shared.queue.load();
        Load { size: self.shared.limits.size, in_use, idle: self.shared.sessions.n_idle(), waiting }
    }

    /// Of sessions and calls.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.shared.sessions.counters()
    }

    /// Waits for calls under way and closes all sessions.
    pub async fn close(&self) {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        self.shared.sessions.trim(Duration::ZERO);
    }
}
