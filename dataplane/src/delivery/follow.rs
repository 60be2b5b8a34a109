//! A runner for each tenant that has subscriptions, begun within a second of the first.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::runner;
use crate::app::{App, Tasks};

const INTERVAL: Duration = Duration::from_millis(250);

/// Starts runners until `stop`, which ends them.
pub(crate) async fn run(app: Arc<App>, tasks: Tasks, stop: CancellationToken) {
    while !stop.is_cancelled() {
        for tenant in app.tenants.sorted() {
            // one that has lost its last subscription goes on: it looks at an empty table each second
            let wanted = tenant.deliveries.take_changed() || app.subscription_facts.is_listed(&tenant.id);
            if wanted && !tenant.deliveries.is_running.swap(true, Ordering::AcqRel) {
                tasks.start(runner::run(app.clone(), tenant, tasks.clone(), stop.clone()));
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}
