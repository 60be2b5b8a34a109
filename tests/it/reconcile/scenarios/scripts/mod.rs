//! A list of scripts: each runs once and in order, new ones are appended while requests go on, and what ran stays as it ran.

mod crash;

use std::time::Duration;

use rowgate_tests::servers::postgres::rows;
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::until;
use rowgate_tests::world::get;
use rowgate_tests::world::status::ready;
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;

use crate::reconcile::acme::key;

scenarios!(
    scripts_run_once_in_order_and_a_changed_one_stops_nothing_that_is_served,
    a_database_made_from_one_script_goes_on_with_a_list,
);

pub(super) const NOTES: &str = "/auth/market/api/notes?$first=1";
/// The first makes what the others need; each writes down that it ran.
pub(super) const FIRST: &str = "create schema app; create table app.notes (id bigint primary key, body text not null); \
    create table app.runs (id bigint generated always as identity, script text); insert into app.runs (script) values ('1')";
const SECOND: &str = "insert into app.runs (script) values ('2'); insert into app.notes values (1, 'first')";

pub(super) fn ran(script: &str) -> String {
    format!("insert into app.runs (script) values ('{script}')")
}

/// ConfigMap `market` with these texts, by key, and Tenant `market` with its keys `listed` as scripts.
pub(super) fn market(texts: &[(&str, &str)], listed: &[&str]) -> String {
    let listed: Vec<String> = listed.iter().map(|key| format!("{{name: market, key: {key}}}")).collect();
    tenant("market", texts, &format!("scripts: [{}]", listed.join(", ")))
}

/// ConfigMap and Tenant of one name.
fn tenant(name: &str, texts: &[(&str, &str)], bootstrap: &str) -> String {
    let data: String = texts.iter().map(|(key, text)| format!("  {key}: \"{text}\"\n")).collect();
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n{data}---\n\
         apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {name}}}\nspec:\n  \
         database: {{name: {name}, bootstrap: {{{bootstrap}}}}}\n  \
         entities: [{{name: notes, source: {{schema: app, object: notes}}, rowLevelSecurity: {{none: true}}}}]\n---\n"
    )
}

pub(super) fn reader(name: &str) -> String {
    let scope = "scope: {permissions: [{entity: notes, actions: [read], fields: {include: ['*']}}]}";
    key(name, "market", scope)
}

/// The scripts that ran, as they have written down and as schema `dl` says.
pub(super) async fn runs(conn: &mut PgConnection) -> (String, String) {
    let text = "select (select string_agg(script, ' ' order by id) from app.runs) as written, \
                       (select string_agg(key, ' ' order by number) from dl.scripts) as noted";
    let row = &rows(conn, text).await[0];
    let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    (text("written"), text("noted"))
}

fn both(written: &str, noted: &str) -> (String, String) {
    (written.to_owned(), noted.to_owned())
}

/// Waits for the word on Tenant `market`, whose message holds these parts.
async fn stalled(stage: &Stage, generation: i64, reason: &str, parts: &[&str]) {
    let status = stage.told("Tenant", "market", generation, reason).await;
    let message = ready(&status).1;
    assert!(parts.iter().all(|part| message.contains(part)), "{parts:?} in {message}");
}

/// Asks with a key until `stop`, and gives how often; each is answered with 200.
async fn asks(url: String, key: String, stop: CancellationToken) -> usize {
    let (mut n_answers, mut pace) = (0, tokio::time::interval(Duration::from_millis(50)));
    while !stop.is_cancelled() {
        let answer = get(&url, &key).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        n_answers += 1;
        pace.tick().await;
    }
    n_answers
}

async fn scripts_run_once_in_order_and_a_changed_one_stops_nothing_that_is_served(on: On) {
    let mut texts = vec![("a", FIRST), ("b", SECOND), ("c", "insert into app.runs (script) values ('3')")];
    let mut stage = Stage::open(on, &(market(&texts, &["a", "b", "c"]) + &reader("web"))).await;
    stage.told("Tenant", "market", 1, DONE).await;
    stage.told("ApiKey", "web", 1, DONE).await;
    let mut conn = stage.server.connect("market").await;
    assert_eq!(runs(&mut conn).await, both("1 2 3", "a b c"));
    let recorded = &rows(&mut conn, "select sha256 from dl.scripts where number = 2").await[0]["sha256"];
    let hash: String = Sha256::digest(SECOND).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(*recorded, hash);

    let web = stage.key("web").await;
    let stop = CancellationToken::new();
    let asking = tokio::spawn(asks(format!("{}{NOTES}", stage.url()), web, stop.clone()));
    let fourth = "alter table app.notes add column region text not null default 'north'; insert into app.runs (script) values ('4')";
    texts.push(("d", fourth));
    stage.put(&market(&texts, &["a", "b", "c", "d"])).await;
    stage.told("Tenant", "market", 2, DONE).await;
    assert_eq!(runs(&mut conn).await, both("1 2 3 4", "a b c d"));

    // what ran is changed: nothing runs, the Tenant is served and followed, and the text that ran heals it
    stage.edit("ConfigMap", "market", "'first'", "'second'").await;
    let restore = format!("restore the text that ran (its SHA-256 begins with {}), and append", &hash[..12]);
    let changed = "script 2 of bootstrap.scripts, ConfigMap market key b, was changed after it ran";
    stalled(&stage, 2, "ScriptChanged", &[changed, &restore]).await;
    stage.put(&reader("late")).await;
    stage.told("ApiKey", "late", 1, DONE).await;
    assert!(stage.opens(&stage.key("late").await, NOTES).await);
    stage.edit("ConfigMap", "market", "'second'", "'first'").await;
    stage.told("Tenant", "market", 2, DONE).await;

    // one that fails: those before it stay run, those behind it wait, and it runs when it is corrected
    let (fifth, sixth, seventh) = (ran("5"), ran("6"), ran("7"));
    let broken = format!("{sixth}; insert into app.nowhere values (1)");
    let listed = ["a", "b", "c", "d", "e", "f", "g"];
    texts.extend([("e", &fifth[..]), ("f", &broken), ("g", &seventh)]);
    stage.put(&market(&texts, &listed)).await;
    let failed = "script 6 of bootstrap.scripts (ConfigMap market key f) failed and was rolled back: PostgreSQL answered ";
    let parts = [failed, "42P01: relation \"app.nowhere\" does not exist; correct the script"];
    stalled(&stage, 3, "BootstrapFailed", &parts).await;
    assert_eq!(runs(&mut conn).await, both("1 2 3 4 5", "a b c d e"));
    texts[5].1 = "create index concurrently on app.notes (body)";
    stage.put(&market(&texts, &listed)).await;
    let parts = ["25001: ", "correct the script: all of it runs in one transaction"];
    until("the other error", async || {
        let status = stage.status("Tenant", "market").await;
        parts.iter().all(|part| ready(&status).1.contains(part)).then_some(())
    })
    .await;
    texts[5].1 = &sixth;
    stage.put(&market(&texts, &listed)).await;
    stage.told("Tenant", "market", 3, DONE).await;
    let all = both("1 2 3 4 5 6 7", "a b c d e f g");
    assert_eq!(runs(&mut conn).await, all);

    // moved, removed, and a ConfigMap that is gone
    stage.put(&market(&texts, &["a", "c", "b", "d", "e", "f", "g"])).await;
    let moved = "script 2 of bootstrap.scripts is ConfigMap market key c, but ConfigMap market key b ran at this place; restore the order";
    stalled(&stage, 4, "ScriptChanged", &[moved]).await;
    stage.put(&market(&texts, &listed[..6])).await;
    let removed =
        "script 7 of bootstrap.scripts, ConfigMap market key g, ran and is not listed any more; restore it";
    stalled(&stage, 5, "ScriptChanged", &[removed]).await;
    stage.remove("ConfigMap", "market").await;
    let gone =
        "script 1 of bootstrap.scripts ran, and ConfigMap market key a does not exist any more; apply it";
    stalled(&stage, 5, "ConfigMapNotFound", &[gone]).await;
    stage.put(&market(&texts, &listed)).await;
    stage.told("Tenant", "market", 6, DONE).await;
    assert_eq!(runs(&mut conn).await, all);
    stop.cancel();
    let n_answers = asking.await.expect("each request was answered");
    assert!(10 < n_answers, "{n_answers} requests meanwhile");
}

async fn a_database_made_from_one_script_goes_on_with_a_list(on: On) {
    let more = ran("2");
    let texts = [("schema.sql", FIRST), ("more", &more)];
    let only = tenant("market", &texts, "configMapRef: {name: market}");
    let mut stage = Stage::open(on, &only).await;
    stage.told("Tenant", "market", 1, DONE).await;
    let mut conn = stage.server.connect("market").await;
    assert_eq!(runs(&mut conn).await, both("1", ""));
    let listed = market(&texts, &["schema.sql", "more"]);
    stage.put(&listed).await;
    stage.told("Tenant", "market", 2, DONE).await;
    assert_eq!(runs(&mut conn).await, both("1 2", "schema.sql more"));
    // back again, and with another text: nothing runs
    stage.put(&only.replace("'1'", "'one'")).await;
    stage.told("Tenant", "market", 3, DONE).await;
    stage.put(&listed.replace("'1'", "'one'")).await;
    stalled(&stage, 4, "ScriptChanged", &["script 1 of bootstrap.scripts", "was changed after it ran"]).await;
    stage.put(&listed).await;
    stage.told("Tenant", "market", 4, DONE).await;
    assert_eq!(runs(&mut conn).await, both("1 2", "schema.sql more"));
}
