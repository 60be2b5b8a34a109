//! What one replica at a time looks after: owners that died, events that are too old, and what is said of subscriptions elsewhere.

use std::sync::atomic::Ordering;

use rowgate_pg::tenant::delivery::{self, facts};

use super::batch::version;
use crate::app::App;
use crate::tenants::tenant::Tenant;

/// What the last one found.
#[derive(Default)]
pub(super) struct Sweep {
    newest: Option<i64>,
}

impl Sweep {
    /// Sweeps, if that is this replica's to do. A failure is another one's turn, or the next round's.
    pub(super) async fn run(&mut self, app: &App, tenant: &Tenant) {
        let replica = app.tenants.replica().clone();
        let takes =
            tenant.by_delivery(move |conn| Box::pin(async move { facts::takes_sweep(conn, &replica).await }));
        if !takes.await.unwrap_or_default() {
            if self.newest.take().is_some() {
                tenant.deliveries.counts.forget();
                app.subscription_facts.forget(&tenant.id);
            }
            return;
        }
        let Some(newest) = tenant.event_tail.newest().map(|tick| tick.number) else { return };
        let Some(catalog) = tenant.current().map(|snapshot| version(&snapshot)) else { return };
        let since = self.newest.map(|newest| newest + 1).filter(|since| *since <= newest);
        let look = tenant.by_delivery(move |conn| {
            Box::pin(async move {
                facts::note_owners(conn).await?;
                let disabled = facts::disable_undelivered(conn).await?;
                if let Some(since) = since {
                    delivery::pass_over(conn, since, newest, &catalog).await?;
                }
                Ok((disabled, facts::all(conn, newest).await?))
            })
        });
        let Ok((disabled, facts)) = look.await else { return };
        self.newest = Some(newest);
        for subscription in disabled {
            let tenant = &tenant.slug;
            tracing::warn!(%tenant, subscription, "a webhook subscription was disabled: an event is undelivered for 30 days");
        }
        let counts = &tenant.deliveries.counts;
        let of = |word: &str| facts.iter().filter(|fact| fact.state == word).count() as u64;
        counts.enabled.store(of("enabled"), Ordering::Relaxed);
        counts.disabled.store(of("disabled"), Ordering::Relaxed);
        let lag = facts.iter().map(|fact| u64::try_from(fact.lag).unwrap_or_default()).sum();
        counts.lag.store(lag, Ordering::Relaxed);
        app.subscription_facts.note(&tenant.id, facts);
    }
}
