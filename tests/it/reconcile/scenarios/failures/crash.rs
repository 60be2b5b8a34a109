//! Whoever reconciles is killed after each statement and each request of its work in turn. What it had begun is finished
//! once, by whoever comes after it.

use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::stage::{DONE, On, Stage, Wish};
use rowgate_tests::steps::Step;
use rowgate_tests::wait::until;
use rowgate_tests::world::status::ready;

use crate::reconcile::acme::{SPEC, key, one, reader, tenant};
use crate::reconcile::scenarios::keys::rotation::{MONTHLY, finder, turning};
use crate::reconcile::scenarios::{NOTES, acme_with};

scenarios!(
    a_key_whose_making_is_cut_off_anywhere_is_one_key_with_one_secret,
    a_rotation_cut_off_anywhere_loses_no_key_and_is_finished_once,
);

/// Nobody looks without a reason here, so that what is counted is the work itself.
pub(crate) fn wish() -> Wish<'static> {
    Wish { by_steps: true, resync_seconds: 3600, ..Wish::default() }
}

/// Waits until the process was killed at this step.
pub(crate) async fn cut_off(stage: &mut Stage, step: &Step) {
    until(&format!("the end at {step:?}"), async || stage.steps().killed().then_some(())).await;
    stage.steps().end();
    stage.ended().await;
    // a folder's process serves, too: nobody waits until its last beat is old
    if !stage.holds_deleted() {
        execute(&mut stage.server.connect("rowgate").await, "delete from control.replicas").await;
    }
}

/// Those at which the process is killed: each that changes anything, and before it the last that only read. A statement
/// that reads leaves what was there, so that of several in a row the last stands for all. How many statuses are written
/// depends on how soon it is served: of each kind the first.
fn chosen(steps: &[Step]) -> Vec<Step> {
    let changes = |i: usize| steps.get(i).is_some_and(Step::changes);
    let last = (0..steps.len()).filter(|i| changes(*i) || changes(i + 1)).map(|i| &steps[i]);
    last.filter(|step| step.nth == 0 || !step.called.ends_with("/status")).cloned().collect()
}

fn has(steps: &[Step], parts: &[&str]) {
    for part in parts {
        assert!(steps.iter().any(|step| step.called.contains(part)), "no step {part:?} among {steps:#?}");
    }
}

async fn a_key_whose_making_is_cut_off_anywhere_is_one_key_with_one_secret(on: On) {
    let mut stage = acme_with(on, wish()).await;
    let (mut sql, mut control) = (stage.server.connect("acme").await, stage.server.connect("rowgate").await);
    let manifest = |name: &str| key(name, "acme", &reader("north", "['*']"));
    // a Tenant can be ready before the last key says so, and the other way round
    let told = async |stage: &Stage, name: &str, n_keys: usize| {
        stage.told("ApiKey", name, 1, DONE).await;
        until(&format!("a Tenant with {n_keys} keys"), async || {
            let status = stage.status("Tenant", "acme").await;
            (status["keys"] == n_keys && ready(&status).0 == DONE).then_some(())
        })
        .await;
    };
    stage.steps().begin(None);
    stage.put(&manifest("whole")).await;
    told(&stage, "whole", 4).await;
    let steps = stage.steps().end();
    has(
        &steps,
        &[
            "create role \"key_ID",
            "delete from dl.staged",
            "select dl.publish",
            "grant \"set_ID",
            "insert into dl.key_secrets",
        ],
    );
    if stage.holds_deleted() {
        has(&steps, &["API PATCH apikeys", "API POST secrets", "API PATCH apikeys/status"]);
    }
    assert!(60 < steps.len(), "{steps:#?}");
    let steps = chosen(&steps);
    assert!(15 < steps.len(), "{steps:#?}");
    for (n, step) in steps.iter().enumerate() {
        let name = format!("cut{n}");
        stage.steps().begin(Some(step.clone()));
        stage.put(&manifest(&name)).await;
        cut_off(&mut stage, step).await;
        let between = stage.secret(&name).await;
        stage.start().await;
        told(&stage, &name, 5 + n).await;

        let secret = stage.secret(&name).await.expect("a Secret");
        assert!(stage.opens(&secret["apiKey"], NOTES).await, "{step:?}");
        let between = between.map(|between| between["apiKey"].clone());
        assert!(between.is_none_or(|key| key == secret["apiKey"]), "{step:?}: written once and replaced");
        let query = format!(
            "select (select count(*) from dl.keys where name = '{name}') as keys, \
                    (select count(*) from dl.key_secrets s join dl.keys k on k.id = s.key_id where k.name = '{name}') as secrets"
        );
        let row = &rows(&mut sql, &query).await[0];
        assert_eq!((&row["keys"], &row["secrets"]), (&1.into(), &1.into()), "{step:?}");
    }
    let roles = "select count(*) from pg_roles where rolname like 'key\\_%'";
    let keys = "select count(*) from dl.keys where role like 'key\\_%'";
    assert_eq!(
        one::<i64>(&mut control, roles).await,
        one::<i64>(&mut sql, keys).await,
        "no role is left over"
    );
}

/// Of a rotation, what changes anything: what only reads leaves things as they were.
async fn a_rotation_cut_off_anywhere_loses_no_key_and_is_finished_once(on: On) {
    let manifests = format!("{}{}", tenant("acme", SPEC), turning("", MONTHLY));
    let mut stage = Stage::with(on, wish(), &manifests).await;
    stage.told("ApiKey", "turning", 1, DONE).await;
    let mut sql = stage.server.connect("acme").await;
    let rotate = |nonce: usize| turning(&format!("rowgate.dev/rotate: '{nonce}'"), MONTHLY);
    let told = async |stage: &Stage, old: &str| {
        let new = stage.key("turning").await;
        new != old && stage.status("ApiKey", "turning").await["currentSecret"] == finder(&new)
    };
    let old = stage.key("turning").await;
    stage.steps().begin(None);
    stage.put(&rotate(0)).await;
    until("a rotation", async || told(&stage, &old).await.then_some(())).await;
    let steps = stage.steps().end();
    has(&steps, &["insert into dl.key_secrets", "update dl.key_secrets"]);
    let steps: Vec<Step> = chosen(&steps).into_iter().filter(Step::changes).collect();
    assert!(4 <= steps.len(), "{steps:#?}");
    for (n, step) in steps.iter().enumerate() {
        let old = stage.key("turning").await;
        stage.steps().begin(Some(step.clone()));
        stage.put(&rotate(n + 1)).await;
        cut_off(&mut stage, step).await;
        let between = stage.key("turning").await;
        stage.start().await;
        until("the end of the rotation", async || told(&stage, &old).await.then_some(())).await;

        let new = stage.key("turning").await;
        until("the new key to work", async || (stage.get(&new, NOTES).await.status == 200).then_some(()))
            .await;
        assert!(stage.opens(&old, NOTES).await, "{step:?}: whoever did not read the Secret again goes on");
        assert!(between == old || between == new, "{step:?}: what was written once is not replaced");
        let live = "select expires_at from dl.key_secrets where revoked_at is null and coalesce(expires_at > now(), true)";
        let live = rows(&mut sql, live).await;
        let n_ending = live.iter().filter(|secret| secret["expires_at"].is_string()).count();
        assert_eq!((live.len(), n_ending), (2, 1), "{step:?}: {live:?}");
        assert_eq!(rows(&mut sql, "select 1 from dl.key_secrets").await.len(), n + 3, "{step:?}");
    }
}
