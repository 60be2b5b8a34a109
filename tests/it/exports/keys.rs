//! An export ends with its key, and its files do.

use std::time::{Duration, Instant};

use rowgate_tests::servers::postgres::rows;
use rowgate_tests::wait::until;
use serde_json::json;

use super::fixture::{Depot, gated, url};

/// From the revocation until nothing is left: 2 s, and what a busy machine adds.
const LATEST: Duration = Duration::from_secs(6);

/// A download under way ends with the key, too: of a file that is longer than what sockets hold.
async fn breaks_off(depot: &Depot) {
    let query =
        "select a.id, a.word, b.word as other from depot.bulk a cross join depot.notes b where b.id <= 10";
    let (job, whole) = depot.export("other", json!({"query": query, "format": "csv"})).await;
    let mut response = reqwest::get(url(&job)).await.expect("it answers");
    let first = response.chunk().await.expect("it begins").expect("bytes");
    let key = depot
        .control(&format!(
            "select key from control.exports where id = '{}'",
            job["id"].as_str().expect("an id")
        ))
        .await;
    depot.sql(&format!("select dl.revoke('{}')", key[0]["key"].as_str().expect("an id"))).await;
    until("no file", async || depot.files().is_empty().then_some(())).await;
    let mut n_bytes = first.len();
    let broken = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => n_bytes += chunk.len(),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(broken && n_bytes < whole.len(), "{n_bytes} of {} bytes", whole.len());
}

/// Seen to fail where nothing asks whether the keys of exports live.
#[tokio::test]
async fn the_exports_of_a_revoked_key_end_and_their_files_go() {
    let depot = Depot::open().await;
    let (done, _) = depot.export("plain", json!({"entity": "notes", "format": "csv"})).await;
    let (kept, _) = depot.export("other", json!({"entity": "notes", "format": "csv"})).await;
    let gate = depot.gate().await;
    let running = depot.started("plain", gated()).await;
    depot.at_the_gate("plain", &running).await;
    assert_eq!(depot.files().len(), 3);
    let key = depot.control(&format!("select key from control.exports where id = '{running}'")).await;
    depot.sql(&format!("select dl.revoke('{}')", key[0]["key"].as_str().expect("an id"))).await;
    let revoked = Instant::now();
    let mut connection = depot.server.connect("depot").await;
    let at_the_gate = "select 1 from pg_locks where locktype = 'advisory' and objid = 7 and not granted";
    until("the end of the statement and of the files", async || {
        let is_over = rows(&mut connection, at_the_gate).await.is_empty();
        (is_over && depot.files().len() == 1).then_some(())
    })
    .await;
    let took = revoked.elapsed();
    println!("all of it went within {took:?}");
    assert!(took < LATEST, "{took:?}");
    assert_eq!(depot.follow(url(&done), &[]).await.status, 404);
    assert_eq!(depot.follow(url(&kept), &[]).await.status, 200);
    assert_eq!(depot.ask("plain", "GET", "").await.status, 401);
    let left = depot.control("select count(*) as n from control.exports").await;
    assert_eq!(left, [json!({"n": 1})]);
    gate.open().await;
    breaks_off(&depot).await;
    let log = depot.world.log();
    let line = log.lines().find(|line| line.contains("rowgate::export") && line.contains(&running));
    let line = line.unwrap_or_else(|| panic!("a line for the export: {log}"));
    assert!(line.contains("cancelled") && !line.contains("word"), "{line}");
}

/// Seen to fail where a pass waits for the transaction of an export, which may take an hour.
#[tokio::test]
async fn a_policy_takes_effect_while_an_export_runs() {
    let depot = Depot::compared_every(1, |_| ()).await;
    let gate = depot.gate().await;
    let id = depot.started("plain", gated()).await;
    depot.at_the_gate("plain", &id).await;
    depot.world.edit(
        "depot.yaml",
        "name: bulk, source: {schema: depot, object: bulk}, rowLevelSecurity: {none: true}",
        "name: bulk, source: {schema: depot, object: bulk}, rowLevelSecurity: {policies: [{name: few, expression: 'id < 10'}]}",
    );
    until("the policy", async || {
        let reply = depot.send("plain", "GET", "/auth/depot/api/bulk?$first=100&$select=id", "").await;
        (reply.status == 200 && reply.json()["value"].as_array().map(Vec::len) == Some(9)).then_some(())
    })
    .await;
    gate.open().await;
    let job = depot.reached("plain", &id, "succeeded").await;
    assert_eq!(job["rows"], 9, "it began again, under the policy: {job}");
}
