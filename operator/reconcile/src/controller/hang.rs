//! What a tenant's own code can do to a pass over it: the pass may never end, or panic. Either is reported for that
//! tenant, and no other waits.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use rowgate_crds::Reason;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::controller::job::Shared;
use crate::source::ResourceSource;
use crate::status::StatusCache;
use crate::status::{Replicas, TenantState};

/// A pass that takes longer in a slow slot is reported.
const REPORT_AFTER: Duration = Duration::from_secs(6);
/// One that takes longer is given up. A bootstrap script that fills large tables needs a while.
const MAX_PASS_DURATION: Duration = Duration::from_secs(3600);

pub(crate) const PANICKED: &str = "an internal error stopped the work on this Tenant, and no other Tenant is affected; the log shows where it occurred; retrying";

/// The work panicked.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Runs it to its end, or to its panic.
pub(crate) async fn contained<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    // shared state is behind locks whose poisoning is ignored
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_told_by_its_hook| Panicked)
}

/// Reports a pass that takes long, and returns when it is to be given up, with what the Tenant's status then says.
/// `is_slow`: the pass is in a slow slot. `before`: what was known of the Tenant before; `None`: the last status stands
/// until the pass ends.
pub(crate) async fn outlasts<S: ResourceSource>(
    shared: &Shared<S>,
    statuses: &StatusCache,
    before: Option<TenantState>,
    is_slow: &Notify,
    cut: &CancellationToken,
) -> (Reason, String) {
    let all = async {
        is_slow.notified().await;
        sleep(REPORT_AFTER).await;
        // what the pass itself reported says more
        if let Some(mut now) = before.filter(|now| !statuses.is_revised(&now.object.uid)) {
            // those are what they were
            now.keys.clear();
            now.relationships.clear();
            let message = "a script or statement in the tenant's database takes long; pg_stat_activity shows it; correct a script that never ends";
            now.findings.retry = Some((Reason::Progressing, message.to_owned()));
            statuses.revise(&now.object.uid);
            shared.reporter.push(statuses.tenant(&now, &Replicas::default(), false));
        }
        sleep(MAX_PASS_DURATION - REPORT_AFTER).await;
    };
    tokio::select! {
        () = all => {
            let message = format!(
                "gave up after {} min; retrying: correct the script or the function in the tenant's database that never ends",
                MAX_PASS_DURATION.as_secs() / 60
            );
            (Reason::Retrying, message)
        }
        () = cut.cancelled() => (Reason::Progressing, "restarted because the manifest changed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_the_work_and_nothing_else() {
        assert_eq!(contained(async { 7 }).await.ok(), Some(7));
        let work = async {
            tokio::task::yield_now().await;
            let none: Option<u8> = std::hint::black_box(None);
            none.expect("a value")
        };
        assert!(contained(work).await.is_err());
    }
}
