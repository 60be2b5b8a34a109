//! What is told when a manifest cannot be followed: each message says what to change, and the rest goes on.

use rowgate_core::role::TenantLogin;
use rowgate_tests::servers::postgres::{attempt, connect, execute};
use rowgate_tests::stage::{DONE, Event, On, Stage};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::ready;
use serde_json::Value;

use crate::reconcile::acme::{SPEC, key, one, reader, tenant};
use crate::reconcile::scenarios::acme;

scenarios!(
    an_entity_that_cannot_be_served_is_told_and_only_it_is_closed,
    what_stands_in_the_database_is_told_until_it_is_mended,
    slugs_and_databases_are_taken_once,
    a_bootstrap_script_runs_wholly_or_not_at_all,
    a_key_that_asks_for_what_is_not_there_is_told,
    row_level_security_left_out_shows_no_row_and_says_so,
);

/// Reason, and parts of the message.
type Expected = (&'static str, &'static [&'static str]);

/// Waits for the Event with the word on an object that turned `Stalled`.
pub(crate) async fn event(stage: &Stage, kind: &str, name: &str, status: &Value) -> Event {
    let (reason, message) = ready(status);
    let is_it = |event: &&Event| event.warning && event.reason == reason && event.note == message;
    let what = format!("a Warning Event {reason}: {message}");
    until(&what, async || stage.events(kind, name).await.iter().find(is_it).cloned()).await
}

/// It comes once, however often the object is looked at.
async fn warned(stage: &Stage, kind: &str, name: &str, status: &Value) {
    let event = event(stage, kind, name, status).await;
    assert_eq!(event.count, 1, "{event:?}");
}

/// What stands in place of the entity list's end.
const ENTITIES: &[(&str, Expected)] = &[
    (
        "    - {name: gone, source: {schema: app, object: gone}}\n",
        ("SourceNotFound", &["entities[gone]", "app.gone", "correct source"]),
    ),
    (
        "    - {name: leak, kind: View, source: {schema: app, object: leak}, keyFields: [id]}\n",
        ("ViewUnsafe", &["entities[leak]", "app.hidden", "declare it as an entity"]),
    ),
    (
        "    - {name: frozen, kind: View, source: {schema: app, object: frozen}, keyFields: [id]}\n",
        ("SourceUnsupported", &["entities[frozen]", "materialized", "expose a view"]),
    ),
    (
        "    - {name: notview, kind: View, source: {schema: app, object: hidden}, keyFields: [id]}\n",
        ("SourceUnsupported", &["entities[notview]", "app.hidden", "correct"]),
    ),
    (
        "    - {name: hidden, source: {schema: app, object: hidden}, rowLevelSecurity: {policies: [{name: p, expression: 'no_such_column = 1'}]}}\n",
        ("PolicyRefused", &["entities[hidden]", "42703", "no_such_column"]),
    ),
    (
        "    - {name: hidden, source: {schema: app, object: hidden}, rowLevelSecurity: {policies: [{name: p, expression: 'true) or ((true'}]}}\n",
        ("PolicyRefused", &["entities[hidden]"]),
    ),
    (
        "    - {name: hidden, source: {schema: app, object: hidden}, rowLevelSecurity: {policies: [{name: p, column: nothing, equals: {claim: c}}]}}\n",
        ("FieldNotFound", &["entities[hidden]", "nothing"]),
    ),
    (
        "    - {name: hidden, source: {schema: app, object: hidden}, mappings: {nothing: other}}\n",
        ("FieldNotFound", &["entities[hidden]", "nothing"]),
    ),
];

async fn an_entity_that_cannot_be_served_is_told_and_only_it_is_closed(on: On) {
    let mut stage = acme(on).await;
    let mut north = connect(&stage.role("north", "acme").await).await.expect("the key's role");
    let mut wrong = Vec::new();
    let mut generation = 1;
    for (entity, (reason, parts)) in ENTITIES {
        stage.put(&tenant("acme", &format!("{SPEC}{entity}"))).await;
        generation += 1;
        let status = stage.settled("Tenant", "acme", generation).await;
        let (got, message) = ready(&status);
        if got != *reason || !parts.iter().all(|part| message.contains(part)) || status["entities"] != 2 {
            wrong.push(format!("{entity}{got}: {message} ({} entities)", status["entities"]));
        }
        warned(&stage, "Tenant", "acme", &status).await;
        assert_eq!(one::<i64>(&mut north, "select count(*) from app.notes").await, 10, "{entity}");
        assert!(attempt(&mut north, "select * from app.hidden").await.is_err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    stage.put(&tenant("acme", SPEC)).await;
    stage.told("Tenant", "acme", generation + 1, DONE).await;
}

async fn what_stands_in_the_database_is_told_until_it_is_mended(on: On) {
    let stage = acme(on).await;
    let mut conn = stage.server.connect("acme").await;
    let role = stage.role("north", "acme").await.role;
    for (spoil, mend, part) in [
        (format!("alter role {role} createdb"), format!("alter role {role} nocreatedb"), "nocreatedb;"),
        (
            "create extension pg_stat_statements".to_owned(),
            "do $$ declare o oid; begin for o in select objid from pg_depend d join pg_extension e on e.oid = d.refobjid and d.deptype = 'e' \
                 and e.extname = 'pg_stat_statements' loop \
                 if exists (select from pg_class where oid = o) then execute format('revoke all on %s from public', o::regclass); end if; \
                 if exists (select from pg_proc where oid = o) then execute format('revoke all on function %s from public', o::regprocedure); end if; \
                 end loop; end $$".to_owned(),
            "let a superuser run there: revoke all on",
        ),
        (
            "alter table app.notes owner to rowgate_superuser".to_owned(),
            format!("alter table app.notes owner to {}", stage.login("acme", TenantLogin::Owner).await.role),
            "owner to",
        ),
        (
            "alter table app.notes rename to other".to_owned(),
            "alter table app.other rename to notes".to_owned(),
            "app.notes",
        ),
    ] {
        execute(&mut conn, &spoil).await;
        until(part, async || {
            ready(&stage.status("Tenant", "acme").await).1.contains(part).then_some(())
        })
        .await;
        execute(&mut conn, &mend).await;
        stage.told("Tenant", "acme", 1, DONE).await;
        stage.told("ApiKey", "north", 1, DONE).await;
    }
}

async fn slugs_and_databases_are_taken_once(on: On) {
    let mut stage = acme(on).await;
    let twin = |name: &str, slug: &str, database: &str| {
        format!(
            "apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {name}}}\nspec: {{slug: {slug}, database: {{name: {database}}}}}\n"
        )
    };
    stage.put(&(twin("twin", "acme", "twin") + "---\n" + &twin("other", "other", "acme"))).await;
    let status = stage.told("Tenant", "twin", 1, "SlugTaken").await;
    assert!(ready(&status).1.contains("another spec.slug"), "{status}");
    let status = stage.told("Tenant", "other", 1, "Taken").await;
    assert!(ready(&status).1.contains("spec.database.name"), "{status}");
    // one that somebody made by hand is nobody's to take
    execute(&mut stage.server.connect("postgres").await, "create database byhand").await;
    stage.put(&twin("more", "more", "byhand")).await;
    let status = stage.told("Tenant", "more", 1, "Taken").await;
    assert!(ready(&status).1.contains("spec.database.name"), "{status}");
    stage.told("Tenant", "acme", 1, DONE).await;
}

/// Seen to fail in the cluster with an operator that asks again only for ConfigMaps that were missing.
async fn a_bootstrap_script_runs_wholly_or_not_at_all(on: On) {
    let good = tenant("acme", SPEC);
    let (_, without) = good.split_once("---\n").expect("two documents");
    let keys = key("north", "acme", &reader("north", "['*']"));
    let mut stage = Stage::open(on, &format!("{without}{keys}")).await;
    let status = stage.told("Tenant", "acme", 1, "ConfigMapNotFound").await;
    assert!(
        ["acme-bootstrap", "schema.sql", "apply it"].iter().all(|part| ready(&status).1.contains(part)),
        "{status}"
    );
    for broken in [
        good.replace("create table app.hidden (", "create table app.half (i int); create table app.notes ("),
        good.replace("insert into app.hidden", "commit; insert into app.nowhere"),
        good.replace("insert into app.hidden", "rollback; select 1; insert into app.nowhere"),
    ] {
        assert_ne!(broken, good);
        stage.put(&broken).await;
        let status = stage.told("Tenant", "acme", 1, "BootstrapFailed").await;
        assert!(ready(&status).1.contains("was rolled back"), "{status}");
        let mut conn = stage.server.connect("acme").await;
        assert_eq!(
            one::<i64>(&mut conn, "select count(*) from pg_namespace where nspname = 'app'").await,
            0,
            "{broken}"
        );
        stage.remove("ConfigMap", "acme-bootstrap").await;
        stage.told("Tenant", "acme", 1, "ConfigMapNotFound").await;
    }
    stage.put(&good).await;
    stage.told("Tenant", "acme", 1, DONE).await;
    stage.told("ApiKey", "north", 1, DONE).await;
}

/// Seen to fail with Events that follow each status, and with none.
async fn a_key_that_asks_for_what_is_not_there_is_told(on: On) {
    let mut stage = acme(on).await;
    for (generation, spec, reason, parts) in [
        (1, reader("north", "[id, nothing]"), "FieldNotFound", ["nothing", "notes"]),
        (
            2,
            reader("north", "[id]").replace("entity: notes", "entity: nodes"),
            "EntityNotFound",
            ["nodes", "not served"],
        ),
    ] {
        stage.put(&key("more", "acme", &spec)).await;
        let status = stage.told("ApiKey", "more", generation, reason).await;
        assert!(parts.iter().all(|part| ready(&status).1.contains(part)), "{status}");
        warned(&stage, "ApiKey", "more", &status).await;
    }
    let taken = "secretName: north";
    stage.put(&key("more", "acme", taken)).await;
    let status = stage.told("ApiKey", "more", 3, "Taken").await;
    assert!(ready(&status).1.contains("set secretName"), "{status}");
    warned(&stage, "ApiKey", "more", &status).await;
    // whoever comes after has no news of it, not even with another generation
    stage.stop().await;
    stage.start().await;
    for generation in 4..6 {
        let end = format!("{taken}, expiresAt: '2999-01-0{generation}T00:00:00Z'");
        stage.put(&key("more", "acme", &end)).await;
        stage.told("ApiKey", "more", generation, "Taken").await;
    }
    warned(&stage, "ApiKey", "more", &status).await;
    let reasons = ["FieldNotFound", "EntityNotFound", "Taken"];
    for reason in reasons {
        assert_eq!(stage.n_events("ApiKey", "more", reason).await, 1, "{reason}");
    }
    stage.told("Tenant", "acme", 1, DONE).await;
    stage.told("ApiKey", "north", 1, DONE).await;
}

async fn row_level_security_left_out_shows_no_row_and_says_so(on: On) {
    let bare = "  shared: {permissions: [{entity: notes, actions: [read]}]}\n  entities:\n    - {name: notes, source: {schema: app, object: notes}}\n";
    let (acme, keys) = (tenant("acme", bare), key("north", "acme", &reader("north", "['*']")));
    let mut stage = Stage::open(on, &format!("{acme}{keys}")).await;
    let status = stage.told("Tenant", "acme", 1, DONE).await;
    assert!(
        status["warnings"][0].as_str().is_some_and(|text| text.contains("add policies, or set none")),
        "{status}"
    );
    stage.told("ApiKey", "north", 1, DONE).await;
    let mut north = connect(&stage.role("north", "acme").await).await.expect("the key's role");
    assert_eq!(one::<i64>(&mut north, "select count(*) from app.notes").await, 0);
    stage
        .put(&tenant(
            "acme",
            &bare.replace("object: notes}}", "object: notes}, rowLevelSecurity: {none: true}}"),
        ))
        .await;
    stage.told("Tenant", "acme", 2, DONE).await;
    assert_eq!(one::<i64>(&mut north, "select count(*) from app.notes").await, 20);
}
