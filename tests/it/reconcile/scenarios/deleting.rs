//! The end of a Tenant, and what stands in its way. In a cluster an object that is deleted stays until all was done for
//! it, so its last spec is followed; of a folder's nothing is left to follow.

use rowgate_core::role::TenantLogin;
use rowgate_tests::servers::postgres::{connect, execute};
use rowgate_tests::stage::{DONE, On, Stage, Wish};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::ready;

use super::{NOTES, acme, acme_with, done};
use crate::reconcile::acme::{SPEC, key, keys, one, reader, tenant};

scenarios!(
    a_tenant_deleted_keeps_its_database_and_comes_back_with_other_keys,
    a_tenant_deleted_with_the_policy_delete_leaves_nothing_where_its_spec_is_known,
    what_cannot_be_revoked_dies_when_its_database_answers,
    a_tenant_paused_or_observed_stays_as_it_is_but_its_keys_can_be_revoked,
);

/// `deletionPolicy: Delete` for the tenant.
fn doomed() -> String {
    let manifest = tenant("acme", SPEC);
    let doomed = manifest.replace("database: {name", "database: {deletionPolicy: Delete, name");
    assert_ne!(doomed, manifest);
    doomed
}

async fn count(stage: &Stage, database: &str, query: &'static str) -> i64 {
    one(&mut stage.server.connect(database).await, query).await
}

const ALIVE: &str = "select count(*) from dl.keys where revoked_at is null";
const PHASE: &str = "select phase from control.tenants";

async fn a_tenant_deleted_keeps_its_database_and_comes_back_with_other_keys(on: On) {
    let mut stage = acme(on).await;
    let before = stage.status("Tenant", "acme").await;
    let old = [stage.key("web").await, stage.key("north").await];
    let owner = stage.login("acme", TenantLogin::Owner).await;
    stage.remove("Tenant", "acme").await;
    stage.gone("Tenant", "acme").await;
    until("every key to be revoked", async || (count(&stage, "acme", ALIVE).await == 0).then_some(())).await;
    // that it is dead, or that its Tenant is not there: what was known first
    let remedies = [("Revoked", "create a new ApiKey"), ("TenantNotFound", "apply it")];
    until("a word on a key without its Tenant", async || {
        let status = stage.status("ApiKey", "north").await;
        let (reason, message) = ready(&status);
        remedies.iter().any(|(word, remedy)| reason == *word && message.contains(remedy)).then_some(())
    })
    .await;
    assert_eq!(count(&stage, "acme", "select count(*) from app.notes").await, 20);
    let mut control = stage.server.connect("rowgate").await;
    until("a database that is kept", async || {
        (one::<String>(&mut control, PHASE).await == "retained").then_some(())
    })
    .await;
    let n_told = stage.n_events("Tenant", "acme", "DatabaseRetained").await;
    assert_eq!(n_told, u64::from(stage.holds_deleted()), "nothing is told of what is not there");
    drop(connect(&owner).await.expect("it stays"));

    stage.put(&tenant("acme", SPEC)).await;
    let after = stage.told("Tenant", "acme", 1, DONE).await;
    assert_eq!(after["tenantId"], before["tenantId"]);
    let rows = count(&stage, "acme", "select count(*) from app.notes").await;
    assert_eq!(rows, 20, "the script does not run again");
    // the keys of before are revoked for good; a new one works
    for old in old {
        assert!(!stage.opens(&old, NOTES).await);
    }
    stage.told("ApiKey", "web", 1, "Revoked").await;
    stage.put(&key("new", "acme", "")).await;
    stage.told("ApiKey", "new", 1, DONE).await;
    assert!(stage.opens(&stage.key("new").await, NOTES).await);
}

/// Only a folder's Tenant vanishes without a word before.
#[tokio::test]
async fn a_pass_that_is_under_way_when_its_tenant_vanishes_tells_its_keys_nothing() {
    let mut stage = acme(On::Folder).await;
    let mut holder = stage.server.connect("acme").await;
    execute(&mut holder, "begin; lock table dl.claims in access exclusive mode").await;
    let hanging = "select count(*) from pg_stat_activity where datname = 'acme' and wait_event_type = 'Lock'";
    let mut control = stage.server.connect("rowgate").await;
    until("a pass that hangs", async || (0 < one::<i64>(&mut control, hanging).await).then_some(())).await;
    stage.remove("Tenant", "acme").await;
    stage.told("ApiKey", "north", 1, "TenantNotFound").await;
    execute(&mut holder, "rollback").await;
    until("every key to be revoked", async || (count(&stage, "acme", ALIVE).await == 0).then_some(())).await;
    let status = stage.status("ApiKey", "north").await;
    assert_eq!(ready(&status).0, "TenantNotFound", "{status}");
}

async fn a_tenant_deleted_with_the_policy_delete_leaves_nothing_where_its_spec_is_known(on: On) {
    let mut stage = acme_with(on, Wish { by_steps: true, ..Wish::default() }).await;
    stage.put(&doomed()).await;
    let status = stage.told("Tenant", "acme", 2, DONE).await;
    if !stage.holds_deleted() {
        assert!(status["warnings"].to_string().contains("in a cluster only"), "{status}");
        stage.remove("Tenant", "acme").await;
        stage.gone("Tenant", "acme").await;
        until("every key to be revoked", async || (count(&stage, "acme", ALIVE).await == 0).then_some(()))
            .await;
        assert_eq!(count(&stage, "acme", "select count(*) from app.notes").await, 20);
        return;
    }
    // sessions that are open are ended: that of requests, a key's own, the owner's
    let mut sessions = Vec::new();
    for login in [
        stage.login("acme", TenantLogin::Auth).await,
        stage.login("acme", TenantLogin::Owner).await,
        stage.role("north", "acme").await,
    ] {
        sessions.push(connect(&login).await.expect("a session"));
    }
    // the process ends after the drop, and before anybody was told of it
    stage.steps().begin_until("drop database");
    for (kind, name) in [("Tenant", "acme"), ("ApiKey", "web"), ("ApiKey", "north"), ("ApiKey", "south")] {
        stage.remove(kind, name).await;
    }
    stage.ended().await;
    assert!(stage.steps().killed());
    let mut control = stage.server.connect("rowgate").await;
    assert_eq!(one::<String>(&mut control, PHASE).await, "retained", "its row goes last");
    stage.steps().end();
    stage.start().await;
    stage.gone("Tenant", "acme").await;
    for key in ["web", "north", "south"] {
        stage.gone("ApiKey", key).await;
    }
    assert_eq!(stage.n_events("Tenant", "acme", "DatabaseDeleted").await, 1);
    for nothing in [
        "select count(*) from pg_database where datname = 'acme'",
        "select count(*) from pg_roles where rolname ~ '^(t[0-9a-z]{26}_|key_|set_)'",
        "select count(*) from control.tenants",
        "select count(*) from control.key_uses",
        "select count(*) from pg_auth_members m left join pg_roles r on r.oid = m.roleid where r.oid is null",
    ] {
        assert_eq!(one::<i64>(&mut control, nothing).await, 0, "{nothing}");
    }
    for mut session in sessions {
        let answer = sqlx::query("select 1").execute(&mut session).await;
        assert!(answer.is_err(), "a session in a database that is gone");
    }
    // another Tenant of the same name begins from nothing
    stage.put(&format!("{}{}", tenant("acme", SPEC), keys())).await;
    done(&stage).await;
}

async fn what_cannot_be_revoked_dies_when_its_database_answers(on: On) {
    let mut stage = acme(on).await;
    let (id, string) = (stage.id("north").await, stage.key("north").await);
    let mut superuser = stage.server.connect("postgres").await;
    execute(&mut superuser, "alter database acme allow_connections false").await;
    // what was known of them stays known
    let status = stage.told("Tenant", "acme", 1, "DatabaseUnavailable").await;
    assert!(status["tenantId"].is_string() && status["entities"] == 2, "{status}");
    let status = stage.told("ApiKey", "north", 1, "DatabaseUnavailable").await;
    assert_eq!(status["apiKeyId"], id.as_str());
    assert!(status["role"].is_string() && status["permissions"][0]["entity"] == "notes", "{status}");

    stage.remove("ApiKey", "north").await;
    if stage.holds_deleted() {
        let status = stage.told("ApiKey", "north", 1, "Deleting").await;
        assert!(ready(&status).1.contains("rowgate.dev/force-release: \"true\""), "{status}");
        let manifest = key("north", "acme", &reader("north", "['*']"));
        let forced = "{name: north, annotations: {rowgate.dev/force-release: 'true'}}";
        stage.put(&manifest.replace("{name: north}", forced)).await;
    }
    stage.gone("ApiKey", "north").await;
    let events = stage.events("ApiKey", "north").await;
    let told = events
        .iter()
        .any(|event| event.reason == "ForceReleased" && event.note.contains("left behind in database acme"));
    assert_eq!(told, stage.holds_deleted(), "{events:?}");

    execute(&mut superuser, "alter database acme allow_connections true").await;
    stage.told("ApiKey", "south", 1, DONE).await;
    until("the end of the key that was left behind", async || {
        let live = "select count(*) from dl.keys where name = 'north' and revoked_at is null";
        (count(&stage, "acme", live).await == 0).then_some(())
    })
    .await;
    assert!(!stage.opens(&string, NOTES).await);
}

/// What stops a Tenant must not keep a key alive.
async fn a_tenant_paused_or_observed_stays_as_it_is_but_its_keys_can_be_revoked(on: On) {
    let mut stage = acme(on).await;
    let (north, south) = (stage.key("north").await, stage.key("south").await);
    let with = |annotation: &str| {
        let metadata = format!("metadata: {{name: acme, annotations: {{{annotation}}}}}");
        tenant("acme", SPEC).replace("metadata: {name: acme}", &metadata)
    };
    stage.put(&with("rowgate.dev/paused: 'true'")).await;
    stage.told("Tenant", "acme", 1, "Paused").await;
    stage.put(&key("south", "acme", "revoked: true")).await;
    stage.put(&key("late", "acme", "")).await;
    until("the end of the key", async || (!stage.opens(&south, NOTES).await).then_some(())).await;
    assert!(stage.opens(&north, NOTES).await, "served as it was");
    assert!(stage.secret("late").await.is_none(), "nothing is made");
    // the same, with what would be done
    stage.put(&with("rowgate.dev/mode: Observe")).await;
    let status = stage.told("Tenant", "acme", 1, "Observing").await;
    let plan = status["plan"].to_string();
    assert!(plan.contains("insert into dl.keys") && !plan.contains("SCRAM"), "{status}");
    assert!(stage.opens(&north, NOTES).await, "served as it was");
    assert!(stage.secret("late").await.is_none(), "nothing is made");
    // what is no mode must not look as if it worked
    stage.put(&with("rowgate.dev/mode: Look")).await;
    let status = stage.told("Tenant", "acme", 1, "InvalidSpec").await;
    assert!(ready(&status).1.contains("rowgate.dev/mode"), "{status}");
    stage.put(&tenant("acme", SPEC)).await;
    stage.told("Tenant", "acme", 1, DONE).await;
    stage.told("ApiKey", "late", 1, DONE).await;
}
