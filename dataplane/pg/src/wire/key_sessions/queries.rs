//! SQL of a tenant's keys, each statement in a session that is logged in as the key's own role and can become no other: read
//! only, alone in its transaction, which is always rolled back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowgate_core::name::Ulid;
use rowgate_sql::shape::Encoding;
use rowgate_sql::text::{Bind, Format};
use tokio::sync::mpsc;

use super::KeySessions;
use super::key_queue::KeyPermit;
use super::key_statements::{Answer, KeyStatements, Ran, Work};
use crate::wire::ask::{Ask, KeyRow};
use crate::wire::connection::Connection;
use crate::wire::connection::queried::{Queried, Step};
use crate::wire::connection::transport::Socket;
use crate::wire::failure::{Cause, Failure, QueryFailure};
use crate::wire::request_pool::Load;

/// By how much the server lets a statement outlive our own limit.
const SPARE: Duration = Duration::from_secs(5);

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
    pub text: Arc<str>,
    /// The values of `$1` and so on.
    pub binds: Vec<Bind>,
    /// Makes the binds where their types are PostgreSQL's to say, and says how rows are read. `None`: `binds` are all, and a type
    /// that is not a scalar of PostgreSQL's own is read as text.
    pub typing: Option<Arc<dyn Typing>>,
    pub values: Values,
    /// How long the answer may be: rows are cut there, one value is refused.
    pub max_bytes: usize,
    /// Takes what there is of the rows whenever that has grown to a chunk; the outcome has the rest. While it takes nothing, nothing
    /// is read from PostgreSQL. `None`: the outcome has all.
    pub chunks: Option<mpsc::Sender<Vec<u8>>>,
}

/// Learns what a statement takes and gives, after PostgreSQL has parsed it and before it runs.
pub trait Typing: Send + Sync {
    /// One bind for each parameter, and how the rows are read.
    ///
    /// # Errors
    /// [`QueryFailure::Declined`] where a value does not fit, or the columns do; or why types could not be looked up.
    fn typed<'a>(&'a self, described: &'a Described) -> BoxFuture<'a, Result<Typed, QueryFailure>>;
}

/// What PostgreSQL says of a statement that it has parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The types of `$1` and so on, by their oids.
    pub parameters: Vec<u32>,
    pub columns: Vec<QueryColumn>,
}

/// How values are sent, and rows are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    pub binds: Vec<Bind>,
    pub rows: RowForm,
}

/// What is made of each row; one entry for each column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowForm {
    /// An object, joined to the next by a comma.
    Json(Vec<Encoding>),
    /// Its length as 4 bytes, the highest first, and the body of PostgreSQL's DataRow, with each column in this format.
    Wire(Vec<Format>),
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
    /// JSON objects joined by commas, without brackets around them, or another [`RowForm`]; or the one value, empty where it is NULL or
    /// there is no row. Without what [`Query::chunks`] took.
    pub json: Vec<u8>,
    pub n_rows: usize,
    /// There are more rows than were taken.
    pub more: bool,
    /// The right to run a query: kept for as long as the answer is in memory, so that a client that does not read it has no more of them
    /// than it may have queries.
    pub permit: Option<KeyPermit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryColumn {
    pub name: String,
    /// Of `pg_type`; below a domain, what that is made of.
    pub oid: u32,
    /// `pg_attribute.atttypmod`, such as the 12 and the 2 of `numeric(12,2)`; -1 where there is none.
    pub modifier: i32,
}

/// How many queries of a tenant run and wait at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLimits {
    /// Sessions, and queries at once, at most; of one key one less.
    pub size: usize,
    /// Queries at most that wait for one of them, half of them of one key; one more is refused at once.
    pub queue: usize,
    /// For the query to begin.
    pub wait: Duration,
}

/// A cheap handle; clones share the queue.
#[derive(Clone)]
pub struct Queries {
    key_statements: KeyStatements,
}

/// A query, and what is done with it.
struct Asked {
    query: Query,
    step: Step,
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
        let QueryLimits { size, queue, wait } = limits;
        Queries { key_statements: KeyStatements::new(sessions, size, queue, wait) }
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

    /// As [`Queries::prepare`], with the values: one that its type does not take is refused.
    pub async fn bind(&self, check: Ask, query: Query) -> Result<(), QueryFailure> {
        self.ask(check, query, Step::Bind).await.map(|_| ())
    }

    async fn ask(&self, check: Ask, query: Query, step: Step) -> Result<QueryOutcome, QueryFailure> {
        let limit = query.limit;
        self.key_statements.run(check, Asked { query, step }, limit).await
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

    /// Waits for queries under way and closes all sessions.
    pub async fn close(&self) {
        self.key_statements.close().await;
    }
}

impl Work for Asked {
    type Outcome = QueryOutcome;
    type Failure = QueryFailure;

    const WORDS: (&'static str, &'static str) = ("query", "queries");

    fn key(&self) -> &Ulid {
        &self.query.key
    }

    fn role(&self) -> &str {
        &self.query.role
    }

    fn statement_timeout_ms(&self) -> u32 {
        self.query.statement_timeout_ms
    }

    fn may(&self, key: &KeyRow) -> Result<(), Failure> {
        match key.id == self.query.key {
            true => Ok(()),
            false => Err(Failure::Changed(Cause::ours("the credential is that of another key"))),
        }
    }

    async fn run(&self, connection: &mut Connection<Socket>) -> Ran<Asked> {
        let Queried { answer, is_whole } = connection.query(&self.query, self.step).await;
        (answer, is_whole)
    }

    fn judged(answer: Answer<Asked>) -> (Answer<Asked>, bool) {
        let is_doubtful =
            matches!(answer, Err(QueryFailure::Any(Failure::Unavailable(_) | Failure::Timeout)));
        (answer, is_doubtful)
    }

    fn lost(cause: String) -> QueryFailure {
        Failure::Unavailable(cause).into()
    }

    fn keep(outcome: &mut QueryOutcome, permit: KeyPermit) {
        outcome.permit = Some(permit);
    }
}

impl Query {
    /// When the server ends it by itself, which matters where we are gone by then.
    pub(in crate::wire) fn timeout_of_server(&self) -> u128 {
        (self.limit + SPARE).as_millis().min(i32::MAX as u128)
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
