//! Somebody's transaction holds a table: nobody waits behind us for it, and no key lives longer for it.

use rowgate_tests::servers::postgres::execute;
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::ready;
use sqlx::PgConnection;

use crate::reconcile::acme::{key, one, reader};
use crate::reconcile::scenarios::{NOTES, acme};

scenarios!(nobody_waits_behind_a_policy_that_waits, a_key_is_revoked_although_a_table_is_held);

const POLICY: &str = "expression: 'true'";
const OTHER: &str = "expression: 'id < 4'";

/// A session with an open transaction in which `statement` ran, and how a status names it.
async fn holding(stage: &Stage, statement: &str) -> (PgConnection, String) {
    let mut conn = stage.server.connect("acme").await;
    let pid: i32 = one(&mut conn, "select pg_backend_pid()").await;
    execute(&mut conn, &format!("begin; {statement}")).await;
    (conn, format!("holds app.notes by session {pid}"))
}

/// A policy needs the table for itself, which a reader's open transaction alone keeps from it.
///
/// Seen to fail without `lock_timeout` in the fence: nothing is told while it waits.
async fn nobody_waits_behind_a_policy_that_waits(on: On) {
    let mut stage = acme(on).await;
    let web = stage.key("web").await;
    let (mut holder, named) = holding(&stage, "select from app.notes").await;
    stage.edit("Tenant", "acme", POLICY, OTHER).await;
    let told = stage.told("Tenant", "acme", 2, "Retrying").await;
    let message = ready(&told).1;
    assert!(message.contains(&named) && message.contains("end the transactions"), "{message}");

    // whoever is made to wait waits for half a second at most, and then comes before us
    let mut other = stage.server.connect("acme").await;
    for _ in 0..20 {
        let work = "set statement_timeout = '5s'; select from app.notes; update app.notes set body = body where id = 1";
        execute(&mut other, work).await;
        assert_eq!(stage.get(&web, NOTES).await.status, 200);
    }
    let ids = "/auth/acme/api/notes?$select=id&$filter=id%20ge%204";
    let n_rows = async || stage.get(&web, ids).await.body["value"].as_array().map(Vec::len);
    assert_eq!(n_rows().await, Some(17), "the policy is what it was");

    execute(&mut holder, "commit").await;
    stage.told("Tenant", "acme", 2, DONE).await;
    assert_eq!(n_rows().await, Some(0));
    assert_eq!(stage.n_events("Tenant", "acme", "Drifted").await, 0, "nobody changed anything by hand");
}

/// Not even a look gets past whoever holds a table for itself: a migration, `VACUUM FULL`, or a forgotten session.
///
/// Seen to fail with a look that waits.
async fn a_key_is_revoked_although_a_table_is_held(on: On) {
    const LIST: &str = "/auth/acme/api";
    let mut stage = acme(on).await;
    let (north, south, web) = (stage.key("north").await, stage.key("south").await, stage.key("web").await);
    let (mut holder, named) = holding(&stage, "lock table app.notes").await;

    let scope = reader("north", "['*']");
    stage.put(&key("north", "acme", &format!("revoked: true, {scope}"))).await;
    until("the key to be dead", async || (!stage.opens(&north, LIST).await).then_some(())).await;
    stage.remove("ApiKey", "south").await;
    until("the key to be dead", async || (!stage.opens(&south, LIST).await).then_some(())).await;
    assert!(stage.opens(&web, LIST).await);
    let told = stage.told("Tenant", "acme", 1, "Retrying").await;
    let message = ready(&told).1;
    assert!(message.contains(&named), "{message}");

    execute(&mut holder, "rollback").await;
    stage.told("Tenant", "acme", 1, DONE).await;
    stage.told("ApiKey", "north", 2, "Revoked").await;
    stage.gone("ApiKey", "south").await;
    assert!(stage.opens(&web, NOTES).await);
}
