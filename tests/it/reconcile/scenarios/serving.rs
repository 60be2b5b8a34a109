//! `Ready` is true only when every live data plane serves what the database holds.

use nix::sys::signal::Signal;
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::ready;

use super::acme;
use crate::reconcile::acme::{SPEC, one, tenant};

scenarios!(ready_waits_for_every_live_data_plane_and_for_no_dead_one);

/// Waits until this many replicas serve it, as its message says.
async fn served_by(stage: &Stage, n: i64) {
    let what = format!("served by {n}");
    until(&what, async || {
        let status = stage.status("Tenant", "acme").await;
        let (reason, message) = ready(&status);
        (reason == DONE && message.starts_with(&what) && status["replicas"] == n).then_some(())
    })
    .await;
}

/// Seen to fail with replicas that count as live for ten minutes, with verdicts that do not ask for the generation, and
/// with a data plane that leaves its row behind.
async fn ready_waits_for_every_live_data_plane_and_for_no_dead_one(on: On) {
    let mut stage = acme(on).await;
    served_by(&stage, 1).await;
    let second = stage.replica().await;
    served_by(&stage, 2).await;

    // One that stands still holds Ready back, but only while it may be alive.
    second.signal(Signal::SIGSTOP);
    stage.put(&tenant("acme", &SPEC.replace("region: nowhere", "region: elsewhere"))).await;
    let status = stage.told("Tenant", "acme", 2, "AwaitingReplicas").await;
    let (_, message) = ready(&status);
    assert!(message.contains("served by 1 of 2") || message.contains("served by 0 of 2"), "{message}");
    stage.told("Tenant", "acme", 2, DONE).await;
    served_by(&stage, 1).await;
    let mut control = stage.server.connect("rowgate").await;
    let silent = "select extract(epoch from max(clock_timestamp() - beat_at))::float8 from control.replicas";
    let silent = one::<f64>(&mut control, silent).await;
    assert!(6.0 <= silent, "a replica that beat {silent} s ago was not waited for");

    // It lives again, and catches up.
    second.signal(Signal::SIGCONT);
    served_by(&stage, 2).await;

    // Asked to end, it takes its row along: nobody waits 6 s for it.
    assert!(second.end(Signal::SIGTERM).await.success());
    assert_eq!(one::<i64>(&mut control, "select count(*) from control.replicas").await, 1);
    served_by(&stage, 1).await;
}
