//! Calls of keys that are revoked or expired end within two seconds, whichever replica began them: each looks at every database
//! in which calls may run, twice a second. So do reads and writes under way, which the replica that began them ends. In the same
//! round connections that nobody uses are closed.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::{App, Tasks};

/// A quarter of what a call may outlive its key.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Looks until `done`, at one tenant without waiting for another.
pub async fn follow(app: Arc<App>, tasks: Tasks, done: CancellationToken) {
    loop {
        tokio::select! {
            () = done.cancelled() => return,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
        for tenant in app.tenants.sorted() {
            tenant.close_idle();
            if tenant.has_long_requests() {
                let tenant = tenant.clone();
                tasks.start(async move { tenant.end_revoked_requests().await });
            }
            if tenant.call_activity.may_be(tenant.calls.is_in_use()) {
                tasks.start(async move { tenant.end_revoked_calls().await });
            }
        }
    }
}
