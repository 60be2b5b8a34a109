//! What dies while an export runs: the data plane, PostgreSQL, a replica that comes back too late. A link leads to a whole file or to none.

use rowgate_tests::wait::{until, until_ok};
use serde_json::json;

use super::fixture::{BULK, Depot, gated, url};

/// That the file has all rows, and no other file is left.
async fn is_whole(depot: &Depot, id: &str) {
    let job = depot.reached("plain", id, "succeeded").await;
    let given = depot.follow(url(&job), &[]).await;
    let text = String::from_utf8(given.bytes).expect("UTF-8");
    assert_eq!((given.status, text.lines().count()), (200, BULK + 1));
    assert!(text.lines().last().is_some_and(|line| line.starts_with(&format!("{BULK},"))), "it is whole");
    until("only the file of the last attempt", async || (depot.files().len() == 1).then_some(())).await;
}

/// A part of a file is never given out, and a lease that ran out is claimed again.
#[tokio::test]
async fn an_export_goes_on_when_the_data_plane_was_killed() {
    let mut depot = Depot::open().await;
    let gate = depot.gate().await;
    let id = depot.started("plain", gated()).await;
    depot.at_the_gate("plain", &id).await;
    depot.world.kill().await;
    assert!(depot.files().iter().all(|name| name.ends_with(".part")), "{:?}", depot.files());
    depot.world.start().await;
    let job = depot.job("plain", &id).await;
    assert!(job["status"] != "succeeded" && job["url"].is_null(), "{job}");
    gate.open().await;
    is_whole(&depot, &id).await;
    let tries = depot.control("select fence, attempts from control.exports").await;
    assert_eq!(tries, [json!({"fence": 2, "attempts": 2})]);
}

#[tokio::test]
async fn an_export_is_given_back_when_the_data_plane_stops() {
    let mut depot = Depot::open().await;
    let gate = depot.gate().await;
    let id = depot.started("plain", gated()).await;
    depot.at_the_gate("plain", &id).await;
    depot.world.stop().await;
    let job = depot.control("select status, attempts from control.exports").await;
    assert_eq!(job, [json!({"status": "queued", "attempts": 0})]);
    depot.world.start().await;
    gate.open().await;
    is_whole(&depot, &id).await;
}

#[tokio::test]
async fn an_export_goes_on_when_postgresql_was_killed() {
    let mut depot = Depot::open().await;
    let gate = depot.gate().await;
    let id = depot.started("plain", gated()).await;
    depot.at_the_gate("plain", &id).await;
    // The servers of tests do not flush what is committed, so that a kill would lose the job.
    depot.sql("checkpoint").await;
    depot.server.kill().await;
    drop(gate);
    depot.server.start_again().await;
    until_ok("the API again", async || {
        let reply = depot.ask("plain", "GET", &format!("/{id}")).await;
        if reply.status == 200 { Ok(()) } else { Err(format!("{reply:?}")) }
    })
    .await;
    is_whole(&depot, &id).await;
}

/// Seen to fail where the outcome of a job is written without its fence.
#[tokio::test]
async fn a_replica_that_lost_its_lease_says_nothing_of_the_job() {
    let depot = Depot::open().await;
    let gate = depot.gate().await;
    let id = depot.started("plain", gated()).await;
    depot.at_the_gate("plain", &id).await;
    // as if another replica had claimed it
    depot
        .change_control(
            "update control.exports set fence = 9, replica = 'another', lease_until = now() + interval '1 hour'",
        )
        .await;
    gate.open().await;
    depot.world.says("\"outcome\":\"cancelled\"").await;
    let job = depot.control("select status, fence, rows::int as rows from control.exports").await;
    assert_eq!(job, [json!({"status": "running", "fence": 9, "rows": job[0]["rows"]})]);
    until("no file of the attempt that lost", async || depot.files().is_empty().then_some(())).await;
    assert!(depot.job("plain", &id).await["url"].is_null());
    // the other one dies, too
    depot.change_control("update control.exports set lease_until = now() - interval '1 second'").await;
    is_whole(&depot, &id).await;
}

#[tokio::test]
async fn an_export_that_breaks_off_three_times_fails_and_says_so() {
    let depot = Depot::open().await;
    let gate = depot.gate().await;
    let id = depot.started("plain", gated()).await;
    for attempt in 1..=3 {
        until("the next attempt", async || {
            let all = depot.control("select attempts from control.exports where status = 'running'").await;
            (all == [json!({"attempts": attempt})]).then_some(())
        })
        .await;
        depot.at_the_gate("plain", &id).await;
        depot.sql("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = 7 and not granted").await;
    }
    let job = depot.reached("plain", &id, "failed").await;
    let message = job["error"]["message"].as_str().unwrap_or_default();
    assert!(job["error"]["code"] == "Unavailable" && message.contains("broke off 3 times"), "{job}");
    assert!(job["url"].is_null());
    until("no file", async || depot.files().is_empty().then_some(())).await;
    gate.open().await;
}
