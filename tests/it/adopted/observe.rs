//! With the annotation `rowgate.dev/mode: Observe`: what would be done is shown, and nothing is done.

use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::says;
use serde_json::{Value, json};

use super::fixture::{LINE, Store, TENANT};

const METADATA: &str = "metadata: {name: store}";
const OBSERVED: &str = "metadata: {name: store, annotations: {rowgate.dev/mode: Observe}}";
const SECURED: &str = "select relname::text as name from pg_class where relrowsecurity order by 1";
const OF_OTHERS: &str =
    "select tablename::text as name from pg_policies where policyname = 'rowgate_others' order by 1";

/// `status.plan`, once it holds `text`.
async fn plan_with(store: &Store, text: &str) -> Vec<String> {
    until(&format!("{text} in the plan"), async || {
        let status = store.world.status("Tenant", "store");
        let plan: Vec<String> = serde_json::from_value(status["plan"].clone()).ok()?;
        plan.iter().any(|line| line.contains(text)).then_some(plan)
    })
    .await
}

/// What Rowgate makes for Tenants and keys.
async fn made(store: &Store) -> Vec<Value> {
    let mut found = Vec::new();
    for begin in ["t0", "key_", "set_"] {
        found.extend(store.made(begin).await);
    }
    let mut control = store.server.connect("rowgate").await;
    found.extend(rows(&mut control, "select id::text from control.tenants").await);
    found
}

#[tokio::test]
async fn a_plan_is_shown_before_anything_is_touched_and_run_without_the_annotation() {
    let mut store = Store::new(&[("store.yaml", &TENANT.replacen(METADATA, OBSERVED, 1))]).await;
    let before = store.dump();
    store.world.spawn(|_| ());

    // before the line of the DBA, too
    let message = store.says("Observing").await;
    assert!(message.ends_with(&format!("; remove the annotation to run them; {}", asked())), "{message}");
    let plan = plan_with(&store, "create policy \"rowgate_others\" on \"app\".\"orders\"").await;
    let lines = plan.join("\n");
    for held in [
        LINE,
        "create role \"t00000000000000000000000000_owner\" login noinherit password E'(hidden)'",
        "alter table \"app\".\"orders\" enable row level security",
        "alter table \"app\".\"customers\" enable row level security",
        "create policy \"rowgate_others\" on \"app\".\"customers\"",
        "create policy \"no_drafts\" on \"app\".\"orders\" as restrictive",
        "grant create on schema dl to",
        "create or replace function dl.capture()",
        "alter role \"store_writer\" bypassrls;",
        "alter role \"store_reader\" bypassrls;",
        "grant select",
    ] {
        assert!(lines.to_lowercase().contains(&held.to_lowercase()), "{held} in\n{lines}");
    }
    for absent in ["SCRAM", "store_dumps\" bypassrls", "\"store\" bypassrls", "more statements are left out"]
    {
        assert!(!lines.contains(absent), "{absent} in\n{lines}");
    }
    let key = says(&store.world, "ApiKey", "north", "TenantNotReady").await;
    assert!(key.contains("rowgate.dev/mode says Observe"), "{key}");

    store.lend().await;
    until("a status without the line", async || {
        (!store.says("Observing").await.contains("a DBA can run")).then_some(())
    })
    .await;
    assert_eq!(store.world.status("Tenant", "store")["plan"].as_array().map(Vec::is_empty), Some(false));
    assert_eq!(made(&store).await, Vec::<Value>::new());
    assert_eq!(store.world.secret("north"), None);
    assert_eq!(store.dump(), before);

    store.world.edit("store.yaml", OBSERVED, METADATA);
    store.is_served().await;
    until("a status without a plan", async || {
        store.world.status("Tenant", "store")["plan"].is_null().then_some(())
    })
    .await;
    assert_ne!(store.dump(), before);
}

#[tokio::test]
async fn what_is_served_is_served_on_and_what_was_changed_by_hand_is_shown() {
    let store = Store::served().await;
    store.world.edit("store.yaml", METADATA, OBSERVED);
    store.says("Observing").await;
    let mut owner = store.as_role("store").await;
    execute(&mut owner, "drop policy rowgate_others on app.customers").await;
    let plan = plan_with(&store, "create policy \"rowgate_others\" on \"app\".\"customers\"").await;
    assert!(!plan.join("\n").contains("create role"), "{plan:#?}");
    store.is_served().await;
    assert_eq!(rows(&mut owner, OF_OTHERS).await, [json!({"name": "orders"})]);

    store.world.edit("store.yaml", OBSERVED, METADATA);
    until("the policy", async || (rows(&mut owner, OF_OTHERS).await.len() == 2).then_some(())).await;
}

#[tokio::test]
async fn of_another_mode_nothing_is_run() {
    let observed = OBSERVED.replace("Observe", "observe");
    let mut store = Store::new(&[("store.yaml", &TENANT.replacen(METADATA, &observed, 1))]).await;
    store.world.spawn(|_| ());
    store.lend().await;
    let message = store.says("InvalidSpec").await;
    assert_eq!(
        message,
        "the annotation rowgate.dev/mode says \"observe\", which is no mode, so that nothing changes; set it to Observe, or remove it"
    );
    assert_eq!(made(&store).await, Vec::<Value>::new());
    assert_eq!(rows(&mut store.as_role("store").await, SECURED).await, Vec::<Value>::new());
}

/// What the message says of the line.
fn asked() -> String {
    format!(
        "Rowgate's login rowgate_operator may not grant store, which owns database store; a DBA can run: {LINE}"
    )
}
