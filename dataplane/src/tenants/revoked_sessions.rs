//! Calls and queries of keys that are revoked or expired end within two seconds, whichever replica began them: each looks at every database
//! in which they may run, twice a second. So do reads and writes under way, which the replica that began them ends. In the same
//! round idle connections are closed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rowgate_pg::tenant::keys::{self, Found};
use tokio_util::sync::CancellationToken;

use crate::app::{App, Tasks};
use crate::tenants::tenant::Tenant;

/// A quarter of what a call may outlive its key.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// What runs for as long may run for a key that has died since.
const MIN_AGE: Duration = Duration::from_millis(250);
/// A look for calls, or requests, of dead keys that takes longer is given up until the next round.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

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
            if tenant.call_activity.may_be(tenant.has_key_sessions()) {
                tasks.start(async move { tenant.end_revoked_calls().await });
            }
        }
    }
}

impl Tenant {
    /// Ends the calls and queries of dead keys in this tenant's database, if there may be any, here or elsewhere.
    pub async fn end_revoked_calls(&self) {
        if !self.call_activity.begin_to_look(self.has_key_sessions()) {
            return;
        }
        let looked = tokio::time::timeout(LOOKUP_TIMEOUT, self.key_sessions.end_dead()).await;
        match &looked {
            Ok(Ok(0)) => {}
            Ok(Ok(n_ended)) => {
                tracing::info!(tenant = %self.slug, n_ended, "ended the calls and queries of keys that are dead");
            }
            Ok(Err(error)) => {
                tracing::debug!(tenant = %self.slug, %error, "cannot look for calls and queries of dead keys");
            }
            Err(_) => {
                tracing::debug!(tenant = %self.slug, "the search for calls and queries of dead keys took too long")
            }
        }
        self.call_activity.looked(matches!(looked, Ok(Ok(0))));
    }

    /// Whether something runs long enough for its key to have died meanwhile.
    pub fn has_long_requests(&self) -> bool {
        !self.request_pool.keys(MIN_AGE).is_empty()
    }

    /// Ends the reads and writes under way of keys that died since they began.
    pub async fn end_revoked_requests(&self) {
        if self.ending_requests.swap(true, Ordering::AcqRel) {
            return;
        }
        let keys = self.request_pool.keys(MIN_AGE);
        let ask = async {
            let mut conn = self.look_ups.acquire().await?;
            let dead = keys::dead(&mut conn, &keys).await;
            conn.done(dead)
        };
        match tokio::time::timeout(LOOKUP_TIMEOUT, ask).await {
            Ok(Ok(dead)) if dead.is_empty() => {}
            Ok(Ok(dead)) => {
                let is_dead = |key: &Found| {
                    dead.iter().any(|(id, secret)| key.id.as_str() == id && key.secret.as_str() == secret)
                };
                let n_ended = self.request_pool.end(is_dead);
                tracing::info!(tenant = %self.slug, n_ended, "ended the requests of keys that are dead");
            }
            Ok(Err(error)) => {
                tracing::debug!(tenant = %self.slug, %error, "cannot look for requests of dead keys");
            }
            Err(_) => {
                tracing::debug!(tenant = %self.slug, "the search for requests of dead keys took too long");
            }
        }
        self.ending_requests.store(false, Ordering::Release);
    }
}
