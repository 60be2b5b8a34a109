//! The loop of one tenant that has subscriptions: it claims those for which something is there and starts a worker for each.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use rowgate_core::name::Ulid;
use rowgate_pg::tenant::delivery;
use rowgate_program::entropy;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::sweep::Sweep;
use super::worker::Worker;
use crate::app::{App, Tasks};
use crate::tenants::tenant::Tenant;

/// Subscriptions of a tenant that a replica delivers at a time, those that wait for a receiver among them.
const MAX_ACTIVE: usize = 2_000;
/// Claimed at a time.
const MAX_CLAIMED: usize = 200;
/// How often leases are prolonged, and subscriptions are looked for that no event leads to.
const ROUND: Duration = Duration::from_secs(1);

/// The leases that workers hold, and how many workers hold each.
#[derive(Default)]
struct Active(Mutex<HashMap<String, usize>>);

/// Counts a worker as long as it lives.
struct Busy {
    active: Arc<Active>,
    lease: String,
}

/// Delivers until `stop`, or until the tenant is served no more, and then for as long as what is under way takes.
pub(super) async fn run(app: Arc<App>, tenant: Arc<Tenant>, tasks: Tasks, stop: CancellationToken) {
    let mut ticks = tenant.ticks();
    let active = Arc::new(Active::default());
    let mut sweep = Sweep::default();
    // up to here every tick led to a claim
    let mut seen: Option<i64> = None;
    let mut round = Instant::now();
    while !stop.is_cancelled() && !tenant.deliveries.is_closed() {
        let newest = ticks.borrow_and_update().map(|tick| tick.number);
        let is_round = round <= Instant::now();
        if is_round {
            round = Instant::now() + ROUND;
            active.renew(&tenant).await;
            sweep.run(&app, &tenant).await;
        }
        if let Some(newest) = newest {
            let since = seen.filter(|_| !is_round).map(|seen| seen + 1);
            let is_news = since.is_none_or(|since| since <= newest);
            if is_news && claim(&app, &tenant, &tasks, &active, newest, since).await {
                seen = Some(newest);
            }
        }
        tokio::select! {
            _ = ticks.changed() => {}
            () = tenant.deliveries.changed.notified() => round = Instant::now(),
            () = tenant.deliveries.left_over.notified() => seen = None,
            () = tokio::time::sleep_until(round) => {}
            () = stop.cancelled() => {}
        }
    }
    // workers give back what they hold, and need their leases until then
    while active.n_workers() != 0 {
        active.renew(&tenant).await;
        tokio::time::sleep(ROUND / 4).await;
    }
    tenant.deliveries.is_running.store(false, Ordering::Release);
}

/// False where there may be more, or none could be claimed.
async fn claim(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    tasks: &Tasks,
    active: &Arc<Active>,
    newest: i64,
    since: Option<i64>,
) -> bool {
    loop {
        let most = MAX_CLAIMED.min(MAX_ACTIVE.saturating_sub(active.n_workers()));
        if most == 0 {
            return false;
        }
        let lease = entropy::ulid();
        let (token, n) = (lease.clone(), i64::try_from(most).unwrap_or_default());
        let claimed = tenant.by_delivery(move |conn| {
            Box::pin(async move { delivery::claim(conn, &token, newest, since, n).await })
        });
        // of a failure the tenant took note, and the next round is another try
        let Ok(claimed) = claimed.await else { return false };
        let n_claimed = claimed.len();
        for claimed in claimed {
            let busy = active.begin(&lease);
            if let Some(worker) = Worker::new(app.clone(), tenant.clone(), lease.clone(), claimed) {
                tasks.start(async move {
                    worker.run().await;
                    drop(busy);
                });
            }
        }
        if n_claimed < most {
            return true;
        }
    }
}

impl Active {
    fn begin(self: &Arc<Self>, lease: &Ulid) -> Busy {
        let lease = lease.as_str().to_owned();
        *self.0.lock().entry(lease.clone()).or_default() += 1;
        Busy { active: self.clone(), lease }
    }

    fn n_workers(&self) -> usize {
        self.0.lock().values().sum()
    }

    /// A lease that cannot be prolonged runs out, and another replica goes on.
    async fn renew(&self, tenant: &Tenant) {
        let leases: Vec<String> = self.0.lock().keys().cloned().collect();
        if !leases.is_empty() {
            let renewed =
                tenant.by_delivery(move |conn| Box::pin(async move { delivery::renew(conn, &leases).await }));
            let _prolonged = renewed.await;
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut active = self.active.0.lock();
        if let Some(n) = active.get_mut(&self.lease) {
            *n -= 1;
            if *n == 0 {
                active.remove(&self.lease);
            }
        }
    }
}
