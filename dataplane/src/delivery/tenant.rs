//! What a tenant keeps for its deliveries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use rowgate_core::problem::Problem;
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::lookups::{LookUps, PgConnection};
use tokio::sync::Notify;

use super::worker::commits::Commits;
use crate::server::metrics::Count;
use crate::tenants::tenant::Tenant;

/// Connections of a replica for a tenant's deliveries: their statements take a fraction of a millisecond.
pub(crate) const CONNECTIONS: usize = 4;

pub(crate) struct Deliveries {
    pub(crate) connections: LookUps,
    /// Something was changed through this replica: a subscription may be there that the control database does not list yet.
    pub(crate) changed: Notify,
    /// A subscription was given back while there was more for it: a claim may have passed it over, as it was just being written.
    pub(super) left_over: Notify,
    has_changed: AtomicBool,
    pub(crate) is_running: AtomicBool,
    /// The tenant is served no more.
    is_closed: AtomicBool,
    pub(crate) counts: DeliveryCounts,
    pub(super) commits: Arc<Commits>,
}

/// What became of requests to receivers.
#[derive(Default)]
pub(crate) struct DeliveryCounts {
    pub(crate) delivered: Count,
    pub(crate) failed: Count,
    pub(crate) dead_letters: Count,
    pub(crate) events: Count,
    /// As of the last sweep of this replica.
    pub(crate) enabled: AtomicU64,
    pub(crate) disabled: AtomicU64,
    pub(crate) lag: AtomicU64,
}

impl DeliveryCounts {
    /// Another replica sweeps now.
    pub(crate) fn forget(&self) {
        [&self.enabled, &self.disabled, &self.lag].into_iter().for_each(|n| n.store(0, Ordering::Relaxed));
    }
}

impl Deliveries {
    pub(crate) fn new(connections: LookUps) -> Deliveries {
        Deliveries {
            connections,
            changed: Notify::new(),
            left_over: Notify::new(),
            has_changed: AtomicBool::new(false),
            is_running: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            counts: DeliveryCounts::default(),
            commits: Arc::default(),
        }
    }

    /// Nothing is delivered any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.connections.close();
        self.changed.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Whether [`Tenant::note_subscriptions_changed`] was called since this was asked last.
    pub(crate) fn take_changed(&self) -> bool {
        self.has_changed.swap(false, Ordering::AcqRel)
    }
}

impl Tenant {
    /// A subscription was made, changed or removed through this replica.
    pub(crate) fn note_subscriptions_changed(&self) {
        self.deliveries.has_changed.store(true, Ordering::Release);
        self.deliveries.changed.notify_one();
    }

    /// Asks something of the tables of subscriptions, in a task that outlives its caller.
    pub(crate) async fn on_deliveries<T: Send + 'static>(
        &self,
        ask: impl for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, PgError>> + Send + 'static,
    ) -> Result<T, Problem> {
        let pool = self.deliveries.connections.clone();
        let exchange = async move {
            let mut conn = pool.acquire().await?;
            let answer = ask(&mut conn).await;
            conn.done(answer)
        };
        self.run_detached(exchange).await
    }

    /// As [`Tenant::on_deliveries`], for those who deliver: in their own task, which nothing cancels, and over a connection that answered a
    /// moment ago. What it fails to say is asked again, or sent again under the same EventIds.
    pub(super) async fn by_delivery<T: Send>(
        &self,
        ask: impl for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, PgError>> + Send,
    ) -> Result<T, Problem> {
        let exchange = async {
            let mut conn = self.deliveries.connections.acquire_warm().await?;
            let answer = ask(&mut conn).await;
            conn.done(answer)
        };
        self.run_attached(exchange).await
    }
}
