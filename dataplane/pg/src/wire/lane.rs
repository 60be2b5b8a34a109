//! Lane A of one tenant: a bounded pool of connections as `t<id>_auth`.

use std::sync::Arc;
use std::time::Duration;

use super::ask::{Ask, Page};
use super::failure::Failure;
use crate::login::Login;

/// How long a lane waits for what.
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
        Lane { shared: Arc::new(Shared { login, limits }) }
    }

    /// Asks in a task of its own, which outlives a caller that no longer waits.
    #[expect(clippy::unused_async, reason = "the exchange comes with the next commit")]
    pub async fn read(&self, _ask: Ask) -> Result<Page, Failure> {
        Err(Failure::Unavailable(format!("{:?} {:?}", self.shared.login, self.shared.limits)))
    }
}
