//! Calls of routines of one tenant, each in a session that is logged in as the key's own role. Tenant code runs there
//! that may do what it wants with its session, and even end transactions.

use std::sync::Arc;
use std::time::Duration;

use rowgate_core::name::Ulid;
use rowgate_sql::shape::Shape;
use rowgate_sql::text::Sql;

use super::KeySessions;
use super::key_statements::{Answer, KeyStatements, Ran, Work};
use crate::wire::ask::{Ask, KeyRow};
use crate::wire::connection::Connection;
use crate::wire::connection::called::Called;
use crate::wire::connection::transport::Socket;
use crate::wire::counters::Counters;
use crate::wire::failure::{CallFailure, Cause, Failure};
use crate::wire::request_pool::Load;

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
    /// Calls at most that wait for one of them, half of them of one key; one more is refused at once.
    pub queue: usize,
    /// For the call to begin.
    pub wait: Duration,
    /// Beyond the statement timeout: a routine that traps it is ended then.
    pub grace: Duration,
}

/// A cheap handle; clones share the sessions.
#[derive(Clone)]
pub struct Calls {
    key_statements: KeyStatements,
    grace: Duration,
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
        let CallLimits { size, queue, wait, grace } = limits;
        Calls { key_statements: KeyStatements::new(sessions, size, queue, wait), grace }
    }

    /// Calls at most once. `check` asks the request pool for the key alone, right before. Nothing was done where it fails with
    /// [`Failure::Changed`], [`Failure::DeadKey`], [`Failure::WrongRole`], [`CallFailure::NoLogin`], [`Failure::Denied`],
    /// [`Failure::Invalid`], [`Failure::Busy`] or [`Failure::Unavailable`]; after any other, never call again.
    ///
    /// It runs in a task of its own, which owns the session. One that nobody waits for any more has a second to end.
    pub async fn call(&self, check: Ask, call: Call) -> Result<CallOutcome, CallFailure> {
        let limit = Duration::from_millis(call.statement_timeout_ms.into()) + self.grace;
        self.key_statements.run(check, call, limit).await
    }

    /// Whether a session is open, or was a moment ago.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.key_statements.is_in_use()
    }

    /// What it does at this moment.
    #[must_use]
    pub fn load(&self) -> Load {
        self.key_statements.load()
    }

    /// Of sessions and calls.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.key_statements.sessions().counters()
    }

    /// Waits for calls under way and closes all sessions.
    pub async fn close(&self) {
        self.key_statements.close().await;
    }
}

impl Work for Call {
    type Outcome = CallOutcome;
    type Failure = CallFailure;

    const WORDS: (&'static str, &'static str) = ("call", "calls");

    fn key(&self) -> &Ulid {
        &self.key
    }

    fn role(&self) -> &str {
        &self.role
    }

    fn statement_timeout_ms(&self) -> u32 {
        self.statement_timeout_ms
    }

    fn may(&self, key: &KeyRow) -> Result<(), Failure> {
        match key.id == self.key && key.generation <= self.generation {
            true => Ok(()),
            false => Err(Failure::Changed(Cause::ours("the call was compiled for an older catalog"))),
        }
    }

    async fn run(&self, connection: &mut Connection<Socket>) -> Ran<Call> {
        let Called { answer, is_whole } = connection.call(self).await;
        (answer, is_whole)
    }

    fn judged(answer: Answer<Call>) -> (Answer<Call>, bool) {
        let answer = answer.map_err(|failure| match failure {
            CallFailure::Any(Failure::Unavailable(cause)) => Call::lost(cause),
            failure => failure,
        });
        let is_doubtful = matches!(answer, Err(CallFailure::Lost(_) | CallFailure::Any(Failure::Timeout)));
        (answer, is_doubtful)
    }

    fn lost(cause: String) -> CallFailure {
        CallFailure::Lost(cause)
    }
}
