//! Exports: what keys ask for is read as these keys, and written into files that they download.
//!
//! `follow` claims jobs under leases, renews these, and sweeps; `job` takes one from its claim to its outcome; `rows` reads what it
//! asks for, `ahead` holds what was read, `write` encodes it into a file, `storage` is where files are. The state of jobs stands in the control database, so that any
//! replica goes on with a job whose replica has died.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rowgate_core::export_link::LinkKey;
use rowgate_core::name::Ulid;
use rowgate_core::problem::Problem;
use rowgate_pg::connect::login::Login;
use rowgate_pg::control::exports::QueueLimits;
use rowgate_pg::control::exports::leases::{Claimed, Progress};
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::lookups::{LookUps, PgConnection};
use rowgate_pg::wire::{QueryLimits, Share};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::app::Tasks;
use crate::server::metrics::Count;
use storage::{Storage, StorageConfig, StorageError};

mod ahead;
pub(crate) mod follow;
mod job;
pub(crate) mod rows;
pub(crate) mod storage;
mod sweep;
mod typing;
mod write;

/// How many jobs of a key there may be, of all replicas together.
pub(crate) const QUEUE: QueueLimits = QueueLimits { waiting: 100, kept: 1_000 };
/// Rows of a file, where no setting says otherwise.
pub const MAX_ROWS: u64 = 50_000_000;
/// For the statement of a job, in seconds.
const STATEMENT_TIMEOUT: Duration = Duration::from_hours(1);
/// How long a job is listed once it has ended, with its file, in seconds.
pub(crate) const LIFE: i32 = 24 * 60 * 60;
/// For how long a link is good, in seconds.
pub(crate) const LINK_LIFE: i64 = 15 * 60;
/// A job ends after so many attempts that broke off.
const MAX_ATTEMPTS: i32 = 3;
/// How long a replica is believed to run a job, in seconds, and how often it says so.
const LEASE: i32 = 6;
const RENEW_INTERVAL: Duration = Duration::from_secs(1);
/// Jobs that one replica runs at a time, of all tenants.
const MAX_RUNNING: usize = 8;
/// Connections to the control database.
const CONNECTIONS: usize = 4;
/// For an answer of the control database.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);

/// What a replica needs to make exports and to give them out.
pub struct Exports {
    pub(crate) storage: Storage,
    pub(crate) link_key: LinkKey,
    pub(crate) max_rows: usize,
    /// A job was made or removed, or has ended.
    pub(crate) changed: Notify,
    /// A job and its file were removed.
    removed: Notify,
    has_removed: AtomicBool,
    replica: Ulid,
    control: LookUps,
    tasks: Tasks,
    running: Mutex<HashMap<(String, i32), Arc<Running>>>,
}

/// What became of the jobs of a tenant, at this replica.
#[derive(Default)]
pub(crate) struct ExportCounts {
    pub(crate) succeeded: Count,
    pub(crate) failed: Count,
    /// Cancelled, or of a key that has died.
    pub(crate) cancelled: Count,
    pub(crate) rows: Count,
    pub(crate) bytes: Count,
    pub(crate) running: AtomicU64,
}

/// A job that this replica runs.
struct Running {
    id: String,
    tenant: String,
    key: String,
    fence: i32,
    rows: AtomicU64,
    bytes: AtomicU64,
    /// Cancelled where the job is not this replica's any more, or is to be given back.
    stop: CancellationToken,
}

impl Exports {
    /// Prepares the folder, or a client of object storage, which is not asked yet.
    ///
    /// # Errors
    /// The folder cannot be made, or not be written to; the environment has no credentials for object storage.
    pub(crate) fn new(
        (place, max_rows): (&StorageConfig, usize),
        link_key: LinkKey,
        replica: Ulid,
        (login, share): (Login, &Share),
        tasks: Tasks,
    ) -> Result<Exports, StorageError> {
        Ok(Exports {
            storage: Storage::open(place)?,
            link_key,
            max_rows,
            changed: Notify::new(),
            removed: Notify::new(),
            has_removed: AtomicBool::new(false),
            replica,
            control: LookUps::new(login, CONNECTIONS, share),
            tasks,
            running: Mutex::default(),
        })
    }

    /// Asks something of the table of jobs, in a task that outlives its caller.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        ask: impl for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, PgError>> + Send + 'static,
    ) -> Result<T, Problem> {
        let pool = self.control.clone();
        let exchange = async move {
            let mut conn = pool.acquire().await?;
            let answer = ask(&mut conn).await;
            conn.done(answer)
        };
        let task = self.tasks.start(tokio::time::timeout(CONTROL_TIMEOUT, exchange));
        let cause = match task.await {
            Ok(Ok(Ok(value))) => return Ok(value),
            // of a database that is away the replica's own loop speaks
            Ok(Ok(Err(error))) if error.code().is_some() => {
                tracing::warn!(%error, "the control database refuses a question about exports");
                return Err(Problem::unavailable());
            }
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_)) => "no answer in time".to_owned(),
            Err(error) => error.to_string(),
        };
        tracing::debug!(cause, "the control database cannot be asked about exports");
        Err(Problem::unavailable())
    }

    /// Notes that a job is run here. An older attempt at it that is still under way ends.
    fn begin(&self, claimed: &Claimed) -> Arc<Running> {
        let Claimed { id, fence, tenant, key, .. } = claimed;
        let running = Arc::new(Running {
            id: id.clone(),
            tenant: tenant.clone(),
            key: key.clone(),
            fence: *fence,
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            stop: CancellationToken::new(),
        });
        let mut all = self.running.lock();
        all.values().filter(|other| other.id == *id).for_each(|other| other.stop.cancel());
        all.insert((id.clone(), *fence), running.clone());
        running
    }

    fn ended(&self, running: &Running) {
        self.running.lock().remove(&(running.id.clone(), running.fence));
        self.changed.notify_one();
    }

    fn all_running(&self) -> Vec<Arc<Running>> {
        self.running.lock().values().cloned().collect()
    }

    /// The job was cancelled or removed: it ends here at once, if it runs here, and its file goes.
    pub(crate) fn forget(&self, id: &str) {
        self.running.lock().values().filter(|it| it.id == id).for_each(|it| it.stop.cancel());
        self.has_removed.store(true, Ordering::Release);
        self.removed.notify_one();
        self.changed.notify_one();
    }

    /// These keys are dead.
    fn stop_keys(&self, tenant: &str, keys: &[String]) {
        let running = self.running.lock();
        let theirs = running.values().filter(|it| it.tenant == tenant && keys.contains(&it.key));
        theirs.for_each(|it| it.stop.cancel());
    }

    /// Whether [`Exports::forget`] was called since this was asked last.
    fn take_removed(&self) -> bool {
        self.has_removed.swap(false, Ordering::AcqRel)
    }
}

impl Running {
    fn progress(&self) -> Progress {
        let number = |of: &AtomicU64| i64::try_from(of.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
        let (rows, bytes) = (number(&self.rows), number(&self.bytes));
        Progress { id: self.id.clone(), fence: self.fence, rows, bytes }
    }
}

/// The sessions in which exports of a tenant run at one replica: they take none of those of the SQL endpoint.
pub(crate) fn query_limits() -> QueryLimits {
    // how many run is decided where jobs are claimed; one that has just been given up may hold its session for a moment
    QueryLimits { size: MAX_RUNNING, queue: 2 * MAX_RUNNING, wait: Duration::from_secs(30) }
}
