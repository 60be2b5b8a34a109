//! SQL of a tenant's keys, each statement in a session that is logged in as the key's own role and can become no other: read
//! only, alone in its transaction, which is always rolled back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rowgate_core::name::Ulid;
use rowgate_sql::text::{Bind, Ident};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::KeySessions;
use super::key_queue::KeyQueue;
use crate::wire::ask::Ask;
use crate::wire::connection::queried::Step;
use crate::wire::failure::{Cause, Failure, QueryFailure};
use crate::wire::pool::NoSlot;
use crate::wire::request_pool::Load;

mod task;

/// One statement of an API key.
#[derive(Clone)]
pub struct Query {
    pub key: Ulid,
    /// What the key is in the database: `datalake_user`, or its own role.
    pub role: String,
    /// The tenant's. Sessions begin with it.
    pub statement_timeout_ms: u32,
    /// How long it may run; then it is canceled, and a second later its session is ended.
    pub limit: Duration,
    /// Where unqualified names are looked for, behind `pg_catalog` and before temporary tables.
    pub schemas: Vec<Ident>,
    pub text: Arc<str>,
    /// The values of `$1` and so on.
    pub binds: Vec<Bind>,
    pub values: Values,
    /// How long the answer may be: rows are cut there, one value is refused.
    pub max_bytes: usize,
}

/// What is wanted of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// So many rows at most, as objects.
    Rows { max: usize },
    /// The json or jsonb in the only column of the only row.
    One,
}

/// What a query gave.
#[derive(Debug)]
pub struct QueryOutcome {
    pub columns: Vec<QueryColumn>,
    /// JSON objects joined by commas, without brackets around them; or the one value, empty where it is NULL or there is no row.
    pub json: Vec<u8>,
    pub n_rows: usize,
    /// There are more rows than were taken.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryColumn {
    pub name: String,
}

/// How many queries of a tenant run and wait at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLimits {
    /// Sessions, and queries at once, at most; of one key one less.
    pub size: usize,
    /// Queries at most that wait for one of them, half of them of one key; whoever comes beyond is refused at once.
    pub queue: usize,
    /// For the query to begin.
    pub wait: Duration,
}

/// A cheap handle; clones share the queue.
#[derive(Clone)]
pub struct Queries {
    shared: Arc<Shared>,
}

struct Shared {
    sessions: KeySessions,
    limits: QueryLimits,
    queue: KeyQueue,
    tasks: TaskTracker,
}

impl QueryLimits {
    /// `size` queries at once, `queue` that wait for 5 seconds.
    #[must_use]
    pub fn new(size: usize, queue: usize) -> QueryLimits {
        QueryLimits { size, queue, wait: Duration::from_secs(5) }
    }
}

impl Queries {
    /// In sessions that calls may use too.
    #[must_use]
    pub fn new(sessions: KeySessions, limits: QueryLimits) -> Queries {
        let queue = KeyQueue::new(limits.size, limits.queue);
        Queries { shared: Arc::new(Shared { sessions, limits, queue, tasks: TaskTracker::new() }) }
    }

    /// Runs the query. `check` asks the request pool for the key alone, right before.
    ///
    /// It runs in a task of its own, which owns the session. One that nobody waits for any more has a second to end.
    pub async fn run(&self, check: Ask, query: Query) -> Result<QueryOutcome, QueryFailure> {
        self.ask(check, query, Step::Run).await
    }

    /// Has PostgreSQL parse the query and plan it, as the key's role, with NULL for every value, and says which columns it has. No
    /// row is read.
    pub async fn prepare(&self, check: Ask, query: Query) -> Result<Vec<QueryColumn>, QueryFailure> {
        self.ask(check, query, Step::Prepare).await.map(|outcome| outcome.columns)
    }

    async fn ask(&self, check: Ask, query: Query, step: Step) -> Result<QueryOutcome, QueryFailure> {
        let QueryLimits { queue, wait, .. } = self.shared.limits;
        let permit = self.shared.queue.take(&query.key, wait).await.map_err(|why| match why {
            NoSlot::Full => {
                Failure::Busy(format!("{queue} queries are waiting already, or half as many of this key"))
            }
            NoSlot::Late | NoSlot::Closed => Failure::Busy("no running query ended in time".to_owned()),
        })?;
        let (sender, receiver) = oneshot::channel();
        let shared = self.shared.clone();
        self.shared.tasks.spawn(task::run(shared, permit, check, query, step, sender));
        let ended = |_| Failure::Internal(Cause::ours("the task of a query ended")).into();
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

    /// Waits for queries under way and closes all sessions.
    pub async fn close(&self) {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        self.shared.sessions.trim(Duration::ZERO);
    }
}

impl Query {
    /// Temporary tables come last: a name that is looked for must not be one that the session made up.
    pub(in crate::wire) fn search_path(&self) -> String {
        let quoted = |schema: &Ident| format!("\"{}\", ", schema.as_str().replace('"', "\"\""));
        let schemas: String = self.schemas.iter().map(quoted).collect();
        format!("pg_catalog, {schemas}pg_temp")
    }

    /// When the server ends it by itself, which matters where we are gone by then.
    pub(in crate::wire) fn timeout_of_server(&self) -> u128 {
        (self.limit + task::SPARE).as_millis().min(i32::MAX as u128)
    }
}

impl Values {
    pub(in crate::wire) fn max_rows(self) -> usize {
        match self {
            Values::Rows { max } => max,
            Values::One => 1,
        }
    }
}

impl fmt::Debug for Query {
    /// Text and values are the key's own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Query({}, {} bytes, {} binds)", self.role, self.text.len(), self.binds.len())
    }
}
