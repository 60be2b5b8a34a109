//! Webhook subscriptions come, change and go as their manifests say; what deliveries have made of them stays.

use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::condition;
use serde_json::Value;
use sqlx::PgConnection;

use crate::reconcile::acme::{key, one, tenant};

scenarios!(
    a_subscription_follows_its_manifest_and_its_state_is_left_alone,
    the_secret_is_written_first_and_a_lost_one_is_replaced_with_a_day_for_the_old,
    a_replay_by_annotation_acts_once_for_each_value,
    what_the_api_made_is_shown_and_stays_the_apis,
);

const EVENTS: &str = "  shared: {permissions: [{entity: notes, actions: [read]}]}
  entities:
    - {name: notes, source: {schema: app, object: notes}, events: true, rowLevelSecurity: {none: true}}
";

fn hook(annotations: &str, more: &str) -> String {
    format!(
        "---\napiVersion: rowgate.dev/v1alpha1\nkind: WebhookSubscription\n\
         metadata: {{name: hook, annotations: {{{annotations}}}}}\n\
         spec: {{tenantRef: {{name: hooked}}, ownerRef: {{name: web}}, url: 'https://192.0.43.8/in'{more}}}\n"
    )
}

async fn hooked(on: On, hook: &str) -> Stage {
    let manifests =
        [tenant("hooked", EVENTS), key("web", "hooked", ""), key("other", "hooked", ""), hook.to_owned()];
    let stage = Stage::open(on, &manifests.concat()).await;
    stage.told("Tenant", "hooked", 1, DONE).await;
    stage.told("ApiKey", "web", 1, DONE).await;
    stage.told("ApiKey", "other", 1, DONE).await;
    stage
}

/// The only subscription that is declared.
async fn row(conn: &mut PgConnection) -> Option<Value> {
    let text = "select id, owner_key, url, tables, ops, suspend, state, reason, version, cursor_tick, last_replay, \
                max_events, headers from dl.subscriptions where origin = 'kubernetes'";
    rows(conn, text).await.pop()
}

/// Seen to fail where a change of the spec sets `state`, and where a removed manifest leaves its row.
async fn a_subscription_follows_its_manifest_and_its_state_is_left_alone(on: On) {
    let more = ", filter: {tables: [notes], ops: [delete, insert]}, headers: {x-team: shop}";
    let mut stage = hooked(on, &hook("", more)).await;
    let status = stage.told("WebhookSubscription", "hook", 1, DONE).await;
    let mut superuser = stage.server.connect("hooked").await;
    let first = row(&mut superuser).await.expect("a row");
    assert_eq!(status["id"], first["id"]);
    assert_eq!(status["secretName"], "hook-webhook");
    assert_eq!(first["owner_key"], stage.id("web").await.as_str());
    assert_eq!(first["ops"], serde_json::json!(["i", "d"]));
    assert_eq!(first["tables"], serde_json::json!(["notes"]));
    let newest: i64 = one(&mut superuser, "select max(number) from dl.ticks").await;
    let cursor = first["cursor_tick"].as_i64().expect("a number");
    assert!((1..=newest + 1).contains(&cursor), "it starts now: {cursor} of {newest}");
    let mut control = stage.server.connect("rowgate").await;
    let known = "select count(*) from control.subscriptions where origin = 'kubernetes'";
    assert_eq!(one::<i64>(&mut control, known).await, 1, "data planes learn of it");

    // what deliveries have found out stays, whatever the manifest says
    execute(
        &mut superuser,
        "update dl.subscriptions set state = 'disabled', reason = 'DeadLetters', owner_inactive = true",
    )
    .await;
    stage
        .edit(
            "WebhookSubscription",
            "hook",
            "192.0.43.8/in",
            "192.0.43.8/other', suspend: true, payloadQuery: '",
        )
        .await;
    stage.told("WebhookSubscription", "hook", 2, DONE).await;
    let second = row(&mut superuser).await.expect("a row");
    assert_eq!((&second["id"], &second["state"]), (&first["id"], &Value::from("disabled")));
    assert_eq!(second["reason"], "DeadLetters");
    assert_eq!(second["suspend"], true);
    assert!(first["version"].as_i64() < second["version"].as_i64(), "a delivery under way learns of it");

    // a change by hand is repaired, another owner begins as one that lives
    execute(&mut superuser, "update dl.subscriptions set url = 'https://elsewhere.example/'").await;
    stage.edit("WebhookSubscription", "hook", "{name: web}", "{name: other}").await;
    stage.told("WebhookSubscription", "hook", 3, DONE).await;
    let third = row(&mut superuser).await.expect("a row");
    assert_eq!(third["owner_key"], stage.id("other").await.as_str());
    assert_eq!(third["url"], "https://192.0.43.8/other");

    // an owner that is not there stalls it, and the row stays as it is
    stage.edit("WebhookSubscription", "hook", "{name: other}", "{name: missing}").await;
    stage.told("WebhookSubscription", "hook", 4, "OwnerNotFound").await;
    assert_eq!(row(&mut superuser).await.expect("a row")["owner_key"], third["owner_key"]);

    stage.remove("WebhookSubscription", "hook").await;
    stage.gone("WebhookSubscription", "hook").await;
    until("the end of its row", async || row(&mut superuser).await.is_none().then_some(())).await;
    until("the end of what data planes know", async || {
        (one::<i64>(&mut control, known).await == 0).then_some(())
    })
    .await;
}

/// Seen to fail where the database is written first: the Secret never holds what is sealed there.
async fn the_secret_is_written_first_and_a_lost_one_is_replaced_with_a_day_for_the_old(on: On) {
    let stage = hooked(on, &hook("", "")).await;
    stage.told("WebhookSubscription", "hook", 1, DONE).await;
    let mut superuser = stage.server.connect("hooked").await;
    let first = stage.secret("hook-webhook").await.expect("a Secret")["secret"].clone();
    assert!(first.starts_with("whsec_"), "{} bytes", first.len());
    let sealing = stage.installation().await.roots().dataplane.sealing_key();
    let id: String = one(&mut superuser, "select id from dl.subscriptions").await;
    let sealed: Vec<u8> = one(&mut superuser, "select sealed from dl.subscription_secrets").await;
    let opened = sealing.open(&id, &sealed).expect("it was sealed with the data plane's root");
    assert_eq!(opened.reveal(), first, "what is sealed was derived from the Secret");

    stage.drop_secret("hook-webhook").await;
    let second = until("another Secret", async || {
        let found = stage.secret("hook-webhook").await?;
        (found["secret"] != first).then(|| found["secret"].clone())
    })
    .await;
    let ends = "select count(*) from dl.subscription_secrets where expires_at between now() + interval '23 hours' and now() + interval '25 hours'";
    until("a day for the old one", async || (one::<i64>(&mut superuser, ends).await == 1).then_some(()))
        .await;
    let sealed: Vec<u8> =
        one(&mut superuser, "select sealed from dl.subscription_secrets where expires_at is null").await;
    assert_eq!(sealing.open(&id, &sealed).expect("it opens").reveal(), second);
    until("its Event", async || {
        (stage.n_events("WebhookSubscription", "hook", "SecretReissued").await == 1).then_some(())
    })
    .await;
}

/// Seen to fail where what was acted on is not noted: each pass sets the subscription back again.
async fn a_replay_by_annotation_acts_once_for_each_value(on: On) {
    let mut stage = hooked(on, &hook("rowgate.dev/note: a", ", suspend: true")).await;
    stage.told("WebhookSubscription", "hook", 1, DONE).await;
    let mut superuser = stage.server.connect("hooked").await;
    let ahead = "update dl.subscriptions set cursor_tick = 1000000, state = 'disabled', reason = 'Gone'";
    execute(&mut superuser, ahead).await;
    stage
        .edit("WebhookSubscription", "hook", "rowgate.dev/note: a", "rowgate.dev/replay: fromRetentionStart")
        .await;
    let replayed = async |stage: &Stage, value: &str| {
        until(value, async || {
            (stage.status("WebhookSubscription", "hook").await["lastReplay"] == value).then_some(())
        })
        .await;
    };
    replayed(&stage, "fromRetentionStart").await;
    let once = row(&mut superuser).await.expect("a row");
    assert_eq!(
        (&once["state"], &once["last_replay"]),
        (&Value::from("enabled"), &Value::from("fromRetentionStart"))
    );
    assert!(once["cursor_tick"].as_i64() < Some(1_000_000), "it is set back: {once}");

    // passes that follow leave it where it is
    execute(&mut superuser, ahead).await;
    stage.edit("WebhookSubscription", "hook", "suspend: true", "suspend: true, batch: {maxEvents: 7}").await;
    stage.told("WebhookSubscription", "hook", 2, DONE).await;
    let after = row(&mut superuser).await.expect("a row");
    assert_eq!(after["max_events"], 7);
    assert_eq!((&after["state"], after["cursor_tick"].as_i64()), (&Value::from("disabled"), Some(1_000_000)));

    stage
        .edit("WebhookSubscription", "hook", "replay: fromRetentionStart", "replay: fromRetentionStart;2")
        .await;
    replayed(&stage, "fromRetentionStart;2").await;
    assert!(row(&mut superuser).await.expect("a row")["cursor_tick"].as_i64() < Some(1_000_000));
    stage.edit("WebhookSubscription", "hook", "fromRetentionStart;2", "yesterday").await;
    stage.told("WebhookSubscription", "hook", 2, "InvalidSpec").await;
}

/// Seen to fail where an edit of what shows it is kept.
async fn what_the_api_made_is_shown_and_stays_the_apis(on: On) {
    let mut stage = hooked(on, "").await;
    let (mut superuser, mut control) =
        (stage.server.connect("hooked").await, stage.server.connect("rowgate").await);
    let owner = stage.id("web").await;
    let id = "01k9zv5n2m8q4r6t0w3y7b1d5f";
    let make = format!(
        "insert into dl.subscriptions (id, name, owner_key, origin, url, suspend, cursor_tick, cursor_seq) \
         values ('{id}', 'Orders out', '{owner}', 'api', 'https://192.0.43.8/in', true, 1, 0)"
    );
    execute(&mut superuser, &make).await;
    let say = format!(
        r#"insert into control.subscriptions (tenant, id, origin, spec, status)
           select id, '{id}', 'api', '{{"name": "Orders out", "url": "https://192.0.43.8/in", "ownerKey": "{owner}", "tables": null,
               "ops": ["insert"], "suspend": true}}', '{{"state": "enabled", "lagEvents": 3, "deliveringReason": "Suspended"}}'
           from control.tenants on conflict do nothing"#
    );
    execute(&mut control, &say).await;
    let name = format!("orders-out-{}", &id[14..]);
    let status = stage.told("WebhookSubscription", &name, 1, DONE).await;
    assert_eq!(status["id"], id);
    until("what the data plane says", async || {
        let status = stage.status("WebhookSubscription", &name).await;
        let is_suspended = condition(&status, "Delivering")["reason"] == "Suspended";
        (status["state"] == "enabled" && is_suspended).then_some(())
    })
    .await;
    assert_eq!(
        one::<i64>(&mut superuser, "select count(*) from dl.subscriptions").await,
        1,
        "it declares nothing"
    );
    if stage.holds_deleted() {
        let edited = format!(
            "apiVersion: rowgate.dev/v1alpha1\nkind: WebhookSubscription\nmetadata: {{name: {name}}}\n\
             spec: {{tenantRef: {{name: hooked}}, ownerRef: {{name: web}}, url: 'https://192.0.43.9/theirs', payloadQuery: 'select 1'}}\n"
        );
        stage.put(&edited).await;
        // the edit is the second generation, and its end the third
        stage.told("WebhookSubscription", &name, 3, DONE).await;
        stage.remove("WebhookSubscription", &name).await;
        stage.told("WebhookSubscription", &name, 1, DONE).await;
    }
    execute(&mut superuser, "delete from dl.subscriptions").await;
    execute(&mut control, "delete from control.subscriptions").await;
    stage.gone("WebhookSubscription", &name).await;
}
