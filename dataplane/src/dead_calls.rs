//! Calls of keys that are revoked or expired end within two seconds, whichever replica began them: each looks at every database
//! in which calls may run, twice a second.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::{App, Tasks};

/// A quarter of what a call may outlive its key.
const LOOK: Duration = Duration::from_millis(500);

/// Looks until `done`, at one tenant without waiting for another.
pub async fn follow(app: Arc<App>, tasks: Tasks, done: CancellationToken) {
    loop {
        tokio::select! {
            () = done.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        for tenant in app.catalogs.sorted() {
            if tenant.called.may_be(tenant.calls.is_in_use()) {
                tasks.start(async move { tenant.end_dead_calls().await });
            }
        }
    }
}
