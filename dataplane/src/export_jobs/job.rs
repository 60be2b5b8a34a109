//! One job, from its claim to its outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rowgate_core::name::Ulid;
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::control::exports::leases::{self, Claimed, Ended};
use rowgate_pg::wire::{Failure, Query, QueryFailure, Values};
use rowgate_sql::export_request::{self, ExportRequest};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::ahead::Ahead;
use super::rows::{Statement, check_of, formats};
use super::typing::{ExportTyping, Wanted};
use super::write::Target;
use super::{Exports, LIFE, MAX_ATTEMPTS, Running, STATEMENT_TIMEOUT};
use crate::api::events::cursor_of_now;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::retry::{self, Attempt, RetryReason};
use crate::tenants::tenant::Tenant;

/// Between two tries to write an outcome, and how many there are: as long as the database may take to come back.
const WRITE_INTERVAL: Duration = Duration::from_millis(500);
const MAX_WRITES: usize = 60;

/// How an attempt ended.
enum Outcome {
    Written(Written),
    Failed(Problem),
    /// It broke off, and may succeed another time.
    Broken(Problem),
    /// The job is to be given back, is another's by now, or is there no more.
    Stopped,
}

/// A whole file.
struct Written {
    n_rows: u64,
    n_bytes: u64,
    is_capped: bool,
}

/// What a job needs.
pub(super) struct Job {
    pub(super) app: Arc<App>,
    pub(super) tenant: Arc<Tenant>,
    pub(super) claimed: Claimed,
    pub(super) running: Arc<Running>,
    pub(super) began: Instant,
}

impl Job {
    /// Runs it and writes down what became of it.
    pub(super) async fn run(self, exports: &Exports) {
        let hash = std::sync::OnceLock::new();
        // what an attempt has left whose replica died, or lost its lease
        if 1 < self.running.fence {
            exports.storage.remove(&self.running.id, self.running.fence - 1).await;
        }
        let outcome = tokio::select! {
            biased;
            () = self.running.stop.cancelled() => Outcome::Stopped,
            outcome = self.attempt(exports, &hash) => outcome,
        };
        let is_last = MAX_ATTEMPTS <= self.claimed.attempts;
        let outcome = match outcome {
            Outcome::Broken(problem) if is_last => {
                let what = format!(
                    "the export broke off {MAX_ATTEMPTS} times, the last time because: {}",
                    problem.message
                );
                Outcome::Failed(Problem::new(problem.code, what))
            }
            outcome => outcome,
        };
        let word = self.write_down(exports, &outcome).await;
        let written = match &outcome {
            Outcome::Written(written) if word == "succeeded" => Some(written),
            _ => {
                exports.storage.remove(&self.running.id, self.running.fence).await;
                None
            }
        };
        let counts = &self.tenant.export_counts;
        match word {
            "succeeded" => counts.succeeded.add_one(),
            "failed" => counts.failed.add_one(),
            "cancelled" => counts.cancelled.add_one(),
            _ => {}
        }
        counts.rows.add(written.map_or(0, |written| written.n_rows));
        counts.bytes.add(written.map_or(0, |written| written.n_bytes));
        let code = match &outcome {
            Outcome::Failed(problem) | Outcome::Broken(problem) => Some(problem.code),
            Outcome::Written(_) | Outcome::Stopped => None,
        };
        tracing::info!(
            target: "rowgate::export",
            tenant = %self.tenant.slug,
            key = self.claimed.key,
            export = self.claimed.id,
            statement = hash.get().map(String::as_str),
            attempt = self.claimed.attempts,
            outcome = word,
            code = code.map(tracing::field::debug),
            rows = written.map(|written| written.n_rows),
            bytes = written.map(|written| written.n_bytes),
            duration_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or_default(),
            "export"
        );
    }

    async fn attempt(&self, exports: &Exports, hash: &std::sync::OnceLock<String>) -> Outcome {
        let request = match export_request::parse(self.claimed.request.as_bytes()) {
            Ok(request) => request,
            Err(problem) => return Outcome::Failed(problem),
        };
        let Ok(key) = self.claimed.key.parse::<Ulid>() else { return Outcome::Failed(Problem::internal()) };
        let caller = Caller::owner(&self.tenant, key, self.app.body_memory.clone());
        let context = match self.tenant.authenticate_fresh(&caller.credential).await {
            Ok(context) => context,
            Err(problem) => return broken_or_failed(problem),
        };
        let export = Export { job: self, exports, request: &request, hash };
        match retry::run(&caller, context, &export).await {
            Ok(written) => Outcome::Written(written),
            Err(problem) => broken_or_failed(problem),
        }
    }

    /// Gives the outcome as it stands in the database then.
    async fn write_down(&self, exports: &Exports, outcome: &Outcome) -> &'static str {
        let (id, fence, attempts) = (self.claimed.id.clone(), self.claimed.fence, self.claimed.attempts);
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let (word, ended) = match outcome {
            Outcome::Written(Written { n_rows, n_bytes, is_capped }) => {
                let (rows, bytes) = (number(*n_rows), number(*n_bytes));
                ("succeeded", Some(Ended::Succeeded { rows, bytes, capped: *is_capped }))
            }
            Outcome::Failed(problem) => {
                let (code, message) = (format!("{:?}", problem.code), problem.message.clone());
                let message = [vec![message], problem.details.clone()].concat().join("; ");
                ("failed", Some(Ended::Failed { code, message }))
            }
            Outcome::Broken(_) => ("broken off", None),
            Outcome::Stopped if self.app.draining.is_cancelled() => ("given back", None),
            Outcome::Stopped => return "cancelled",
        };
        let counts = matches!(outcome, Outcome::Broken(_));
        let seconds = if counts { attempts } else { 0 };
        for _ in 0..MAX_WRITES {
            let (id, ended) = (id.clone(), ended.clone());
            let write = exports.ask(move |conn| {
                Box::pin(async move {
                    match ended {
                        Some(ended) => leases::end(conn, &id, fence, &ended, LIFE).await,
                        None => leases::release(conn, &id, fence, seconds, counts).await,
                    }
                })
            });
            match write.await {
                Ok(true) => return word,
                // whoever has the job by now, or took it away, has the last word
                Ok(false) => return "cancelled",
                Err(_) if self.running.stop.is_cancelled() => return "cancelled",
                Err(_) => tokio::time::sleep(WRITE_INTERVAL).await,
            }
        }
        // the lease has run out long since, and the job is run again
        "broken off"
    }
}

/// Whether another attempt may succeed.
fn broken_or_failed(problem: Problem) -> Outcome {
    match problem.code {
        Code::Unavailable => Outcome::Broken(problem),
        // the key has died, and the sweep forgets its jobs
        Code::Unauthorized => Outcome::Stopped,
        _ => Outcome::Failed(problem),
    }
}

/// What is tried: all rows, from the first, in one statement.
struct Export<'a> {
    job: &'a Job,
    exports: &'a Exports,
    request: &'a ExportRequest,
    hash: &'a std::sync::OnceLock<String>,
}

impl Attempt for Export<'_> {
    type Answer = Written;

    async fn attempt(&self, caller: &Caller, context: &KeyContext, _: bool) -> Result<Written, RetryReason> {
        let Export { job, exports, request, hash } = self;
        let statement = Statement::new(&job.app.cursor_key, context, &request.source);
        let statement = Arc::new(statement?);
        let _first = hash.set(fingerprint(&statement.text));
        let (format, compression) = formats(request);
        // before the snapshot of the rows, so that no change falls between the two
        let cursor = match statement.entity() {
            Some(entity) => cursor_of_now(&job.tenant, context, entity).await.map_err(RetryReason::Final)?,
            None => None,
        };
        let estimate = estimate(caller, context, &statement).await;
        let (id, fence) = (job.claimed.id.clone(), job.claimed.fence);
        let begun = exports.ask(move |conn| {
            Box::pin(async move { leases::begun(conn, &id, fence, estimate, cursor.as_deref()).await })
        });
        if !begun.await.map_err(RetryReason::Final)? {
            job.running.stop.cancel();
            return Err(RetryReason::Final(Problem::unavailable()));
        }
        let allowed = context.snapshot.catalog.limits.max_export_rows;
        let allowed = allowed.and_then(|n| usize::try_from(n).ok()).unwrap_or(exports.max_rows);
        let max_rows = allowed.min(exports.max_rows);
        let typing = ExportTyping::new(job.tenant.clone(), context, statement.clone(), Wanted::Rows(format));
        let typing = Arc::new(typing);
        let target = Target {
            storage: exports.storage.clone(),
            name: request.file_name(),
            running: job.running.clone(),
            typing: typing.clone(),
            format,
            compression,
        };
        let (sender, read) = mpsc::channel(1);
        let (ahead, chunks) = Ahead::of(read);
        let query = Query {
            values: Values::Rows { max: max_rows },
            chunks: Some(sender),
            ..statement.query(context, STATEMENT_TIMEOUT, typing)
        };
        let check = check_of(caller, context);
        let ran = job.tenant.exports.run(check, query);
        let (ran, (), written) = tokio::join!(ran, ahead.run(), target.write(chunks));
        // one that takes no more rows ends the statement, whose failure then says nothing
        let unfinished = written.map_err(|error| RetryReason::Final(error.problem()))?;
        let outcome = ran.map_err(|failure| match failure {
            QueryFailure::Any(Failure::Timeout) => {
                let what = "the export ran for an hour, which is the longest that one may; export fewer rows, or filter by an indexed column";
                RetryReason::Final(Problem::new(Code::StatementTimeout, what))
            }
            failure => statement.failed(caller, context, failure),
        })?;
        let finished = unfinished.finish(outcome.json).await;
        let (n_rows, n_bytes) = finished.map_err(|error| RetryReason::Final(error.problem()))?;
        Ok(Written { n_rows, n_bytes, is_capped: outcome.more })
    }
}

/// How many rows PostgreSQL expects, for a key that may know how many there are: its plans are made of all rows of a table, those
/// that row-level security hides among them.
async fn estimate(caller: &Caller, context: &KeyContext, statement: &Arc<Statement>) -> Option<i64> {
    if context.key.role != rowgate_core::role::SHARED_ROLE || statement.hides_rows(context) {
        return None;
    }
    let tenant = caller.tenant.clone();
    let typing = ExportTyping::new(tenant, context, statement.clone(), Wanted::Plan);
    let text = format!("explain (format json) {}", statement.text);
    let limit = Duration::from_secs(5);
    let query = Query {
        text: text.into(),
        values: Values::One,
        max_bytes: 4 << 20,
        ..statement.query(context, limit, Arc::new(typing))
    };
    let planned = caller.tenant.exports.run(check_of(caller, context), query).await.ok()?;
    let plan: serde_json::Value = serde_json::from_slice(&planned.json).ok()?;
    plan.get(0)?.get("Plan")?.get("Plan Rows")?.as_f64().map(|rows| rows as i64)
}

/// Tells statements apart in the log, which never holds their text.
fn fingerprint(text: &str) -> String {
    Sha256::digest(text)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
