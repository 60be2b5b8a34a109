//! What has to go: jobs of keys that have died, jobs that are too old, and the files of all that is no more.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rowgate_core::problem::Problem;
use rowgate_pg::control::exports::leases;
use rowgate_pg::tenant::keys;

use super::Exports;
use super::storage::Storage;
use crate::app::App;

/// Between two sweeps of files, where nothing is known to have gone. Each listing of object storage is paid for.
const FOLDER_INTERVAL: Duration = Duration::from_secs(5);
const OBJECTS_INTERVAL: Duration = Duration::from_mins(5);
/// For a tenant's database to say which keys live.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Sweep {
    /// When the files were last looked at.
    files: Option<Instant>,
}

impl Sweep {
    /// One round. What fails is tried again in the next.
    pub(super) async fn run(&mut self, app: &App, exports: &Exports) {
        let n_forgotten = forget_dead(app, exports).await.unwrap_or_default();
        let interval = match &exports.storage {
            Storage::Folder(_) => FOLDER_INTERVAL,
            Storage::Objects(_) => OBJECTS_INTERVAL,
        };
        let is_due = self.files.is_none_or(|files| interval <= files.elapsed());
        let is_due = exports.take_removed() || is_due;
        if (0 < n_forgotten || is_due) && sweep_files(exports).await.is_ok() {
            self.files = Some(Instant::now());
        }
    }
}

/// Forgets the jobs of keys that are dead, and gives how many there were.
async fn forget_dead(app: &App, exports: &Exports) -> Result<u64, Problem> {
    if !app.tenants.is_known() {
        return Ok(0);
    }
    let pairs = exports.ask(|conn| Box::pin(async move { leases::keys(conn).await })).await?;
    let mut by_tenant: BTreeMap<String, Vec<String>> = BTreeMap::new();
    pairs.into_iter().for_each(|(tenant, key)| by_tenant.entry(tenant).or_default().push(key));
    let dead = by_tenant.into_iter().map(async |(tenant, all)| {
        let dead = dead_of(app, &tenant, all).await;
        (tenant, dead)
    });
    let mut n_forgotten = 0;
    for (tenant, dead) in join_all(dead).await {
        if dead.is_empty() {
            continue;
        }
        exports.stop_keys(&tenant, &dead);
        let forget =
            exports.ask(move |conn| Box::pin(async move { leases::forget_keys(conn, &tenant, &dead).await }));
        n_forgotten += forget.await?;
    }
    if 0 < n_forgotten {
        tracing::info!(n_forgotten, "removed the exports of keys that are dead");
    }
    Ok(n_forgotten)
}

/// Those of the keys that are dead. A tenant that is served no more has no live key; one that does not answer may have.
async fn dead_of(app: &App, tenant: &str, keys: Vec<String>) -> Vec<String> {
    let Some(tenant) = app.tenants.by_id(tenant) else { return keys };
    let pool = tenant.look_ups.clone();
    let look = async move {
        let mut conn = pool.acquire().await?;
        let dead = keys::dead_ids(&mut conn, &keys).await;
        conn.done(dead)
    };
    match tokio::time::timeout(LOOKUP_TIMEOUT, look).await {
        Ok(Ok(dead)) => dead,
        Ok(Err(error)) => {
            tracing::debug!(tenant = %tenant.slug, %error, "cannot look for exports of dead keys");
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

/// Removes the files for which there is no job, and fails the jobs whose files are gone. Files are listed before jobs: one that comes
/// later has a job that is not seen, and whose file is looked for again.
async fn sweep_files(exports: &Exports) -> Result<(), Problem> {
    exports.ask(|conn| Box::pin(async move { leases::forget_expired(conn).await })).await?;
    let files = exports.storage.list().await.map_err(|error| {
        tracing::error!(%error, storage = %exports.storage, "the files of exports cannot be listed");
        Problem::internal()
    })?;
    let jobs = exports.ask(|conn| Box::pin(async move { leases::with_files(conn).await })).await?;
    let kept: HashSet<(String, i32)> = jobs.iter().map(|(id, fence, _)| (id.clone(), *fence)).collect();
    for (id, fence) in files.difference(&kept) {
        exports.storage.remove(id, *fence).await;
    }
    let mut lost = Vec::new();
    for (id, fence, is_whole) in jobs {
        let is_listed = files.contains(&(id.clone(), fence));
        if is_whole && !is_listed && exports.storage.lacks(&id, fence).await {
            lost.push(id);
        }
    }
    if lost.is_empty() {
        return Ok(());
    }
    tracing::warn!(n_lost = lost.len(), storage = %exports.storage, "files of exports are gone");
    let lose = exports.ask(move |conn| {
        let what = "the file of this export was lost at the server; start the export again";
        Box::pin(async move { leases::lose(conn, &lost, "Unavailable", what).await })
    });
    lose.await
}
