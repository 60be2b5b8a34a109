//! The loops of a replica: it claims jobs, prolongs its leases, and sweeps.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rowgate_pg::control::exports::leases::{self, Claimable};
use rowgate_sql::catalog::Limits;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::job::Job;
use super::storage::Storage;
use super::sweep::Sweep;
use super::{Exports, LEASE, MAX_RUNNING, RENEW_INTERVAL};
use crate::app::{App, Tasks};
use crate::tenants::tenant::Tenant;

/// Between two looks for jobs, where nothing is known to have changed.
const CLAIM_INTERVAL: Duration = Duration::from_secs(1);
/// Between two looks for keys that have died: a quarter of what a file may outlive its key.
const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// Runs jobs until `stop`, and then until those under way are given back.
pub(crate) async fn run(app: Arc<App>, tasks: Tasks, stop: CancellationToken) {
    let Some(exports) = app.exports.clone() else { return };
    tokio::join!(
        claim_jobs(&app, &exports, &tasks, &stop),
        renew_leases(&exports, &stop),
        sweep(&app, &exports, &stop),
        probe(&exports),
    );
}

/// Says so when object storage cannot be written to, before the first export fails.
async fn probe(exports: &Exports) {
    let Storage::Objects(objects) = &exports.storage else { return };
    if let Err(error) = objects.probe(exports.replica.as_str()).await {
        let storage = &exports.storage;
        tracing::error!(%error, %storage, "object storage cannot be written to; exports fail until it can");
    }
}

async fn claim_jobs(app: &Arc<App>, exports: &Arc<Exports>, tasks: &Tasks, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        while exports.all_running().len() < MAX_RUNNING && claim(app, exports, tasks).await {}
        tokio::select! {
            () = stop.cancelled() => {}
            () = exports.changed.notified() => {}
            () = sleep(CLAIM_INTERVAL) => {}
        }
    }
    exports.all_running().iter().for_each(|running| running.stop.cancel());
}

/// Takes one job over and starts it. False: there is none.
async fn claim(app: &Arc<App>, exports: &Arc<Exports>, tasks: &Tasks) -> bool {
    let served: Vec<Claimable> = app.tenants.sorted().iter().map(|tenant| claimable(tenant)).collect();
    if served.is_empty() {
        return false;
    }
    let replica = app.tenants.replica().clone();
    let claimed =
        exports.ask(move |conn| Box::pin(async move { leases::claim(conn, &replica, &served, LEASE).await }));
    let Ok(Some(claimed)) = claimed.await else { return false };
    // a tenant that went away in this moment comes back or is swept
    let Some(tenant) = app.tenants.by_id(&claimed.tenant) else { return false };
    let running = exports.begin(&claimed);
    let (app, exports) = (app.clone(), exports.clone());
    tasks.start(async move {
        let n_running = tenant.clone();
        n_running.export_counts.running.fetch_add(1, Ordering::Relaxed);
        let job = Job { app, tenant, claimed, running: running.clone(), began: Instant::now() };
        job.run(&exports).await;
        n_running.export_counts.running.fetch_sub(1, Ordering::Relaxed);
        exports.ended(&running);
    });
    true
}

/// By the tenant's limits, which are the usual ones until its first job has read the catalog.
fn claimable(tenant: &Tenant) -> Claimable {
    let of = |limits: &Limits| (limits.exports, limits.exports_per_key);
    let (running, per_key) = match tenant.current() {
        Some(snapshot) => of(&snapshot.catalog.limits),
        None => of(&Limits::default()),
    };
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let tenant = tenant.id.as_str().to_owned();
    Claimable { tenant, running: number(running), running_per_key: number(per_key) }
}

/// A lease that cannot be prolonged runs out, and the job is claimed again.
async fn renew_leases(exports: &Exports, stop: &CancellationToken) {
    // what is given back needs its lease until then
    while !stop.is_cancelled() || !exports.all_running().is_empty() {
        let all = exports.all_running();
        if !all.is_empty() {
            let jobs: Vec<_> = all.iter().map(|running| running.progress()).collect();
            let replica = exports.replica.clone();
            let renewed = exports
                .ask(move |conn| Box::pin(async move { leases::renew(conn, &replica, &jobs, LEASE).await }));
            if let Ok(ours) = renewed.await {
                all.iter().filter(|it| !ours.contains(&it.id)).for_each(|it| it.stop.cancel());
            }
        }
        tokio::select! {
            () = sleep(RENEW_INTERVAL) => {}
            () = stop.cancelled(), if !stop.is_cancelled() => {}
        }
    }
}

async fn sweep(app: &App, exports: &Exports, stop: &CancellationToken) {
    let mut sweep = Sweep::default();
    while !stop.is_cancelled() {
        sweep.run(app, exports).await;
        tokio::select! {
            () = stop.cancelled() => {}
            () = exports.removed.notified() => {}
            () = sleep(SWEEP_INTERVAL) => {}
        }
    }
}
