//! What is told when a manifest cannot be followed: each message says what to change, and the rest goes on.

use rowgate_core::role::TenantLogin;
use rowgate_tests::postgres::{attempt, connect, execute};
use rowgate_tests::reconciler::{DONE, Reconciler, ready};
use rowgate_tests::wait::until;

use super::{SPEC, acme, key, one, reader, tenant};

/// Reason, and parts of the message.
type Told = (&'static str, &'static [&'static str]);

/// What stands in place of the entity list's end.
const ENTITIES: &[(&str, Told)] = &[
    (
        "    - {name: gone, source: {schema: app, object: gone}}\n",
        ("SourceNotFound", &["entities[gone]", "app.gone", "correct source"]),
    ),
    (
        "    - {name: leak, kind: View, source: {schema: app, object: leak}, keyFields: [id]}\n",
        ("ViewUnsafe", &["entities[leak]", "app.hidden", "make it one"]),
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

#[tokio::test]
async fn an_entity_that_cannot_be_served_is_told_and_only_it_is_closed() {
    let reconciler = acme(&[]).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    let mut north = connect(&reconciler.key("north", "acme")).await.expect("the key's role");
    let mut wrong = Vec::new();
    let mut generation = 1;
    for (entity, (reason, parts)) in ENTITIES {
        reconciler.write("acme.yaml", &tenant("acme", &format!("{SPEC}{entity}")));
        generation += 1;
        let status = reconciler.settled("tenant", "acme", generation).await;
        let (got, message) = ready(&status);
        if got != *reason || !parts.iter().all(|part| message.contains(part)) || status["entities"] != 2 {
            wrong.push(format!("{entity}{got}: {message} ({} entities)", status["entities"]));
        }
        assert_eq!(one::<i64>(&mut north, "select count(*) from app.notes").await, 10, "{entity}");
        assert!(attempt(&mut north, "select * from app.hidden").await.is_err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    reconciler.write("acme.yaml", &tenant("acme", SPEC));
    reconciler.told("tenant", "acme", generation + 1, DONE).await;
}

#[tokio::test]
async fn what_stands_in_the_database_is_told_until_it_is_mended() {
    let reconciler = acme(&[]).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    let mut conn = reconciler.server.connect("acme").await;
    let role = reconciler.key("north", "acme").role;
    for (spoil, mend, part) in [
        (format!("alter role {role} createdb"), format!("alter role {role} nocreatedb"), "nocreatedb;"),
        (
            // our PostgreSQL for tests comes without it, so its row alone stands for it
            "insert into pg_extension values (99999, 'pg_stat_statements', 10, 2200, true, '1.12', null, null)".to_owned(),
            "delete from pg_extension where extname = 'pg_stat_statements'".to_owned(),
            "drop it",
        ),
        (
            "alter table app.notes owner to rowgate_superuser".to_owned(),
            format!("alter table app.notes owner to {}", reconciler.login("acme", TenantLogin::Owner).role),
            "owner to",
        ),
        (
            "alter table app.notes rename to other".to_owned(),
            "alter table app.other rename to notes".to_owned(),
            "app.notes",
        ),
    ] {
        execute(&mut conn, &spoil).await;
        let stalled =
            async || reconciler.file("tenant", "acme").filter(|file| ready(&file["status"]).1.contains(part));
        until(part, stalled).await;
        execute(&mut conn, &mend).await;
        reconciler.told("tenant", "acme", 1, DONE).await;
        reconciler.told("apikey", "north", 1, DONE).await;
    }
}

#[tokio::test]
async fn slugs_and_databases_are_taken_once() {
    let reconciler = acme(&[]).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    let twin = |name: &str, slug: &str, database: &str| {
        format!(
            "apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {name}}}\nspec: {{slug: {slug}, database: {{name: {database}}}}}\n"
        )
    };
    reconciler
        .write("twin.yaml", &(twin("twin", "acme", "twin") + "---\n" + &twin("other", "other", "acme")));
    let status = reconciler.told("tenant", "twin", 1, "SlugTaken").await;
    assert!(ready(&status).1.contains("another spec.slug"), "{status}");
    let status = reconciler.told("tenant", "other", 1, "Taken").await;
    assert!(ready(&status).1.contains("spec.database.name"), "{status}");
    // one that somebody made by hand is nobody's to take
    execute(&mut reconciler.server.connect("postgres").await, "create database byhand").await;
    reconciler.write("more.yaml", &twin("more", "more", "byhand"));
    let status = reconciler.told("tenant", "more", 1, "Taken").await;
    assert!(ready(&status).1.contains("spec.database.name"), "{status}");
    reconciler.told("tenant", "acme", 1, DONE).await;
}

#[tokio::test]
async fn a_bootstrap_script_runs_wholly_or_not_at_all() {
    let good = tenant("acme", SPEC);
    let (_, without) = good.split_once("---\n").expect("two documents");
    let keys = key("north", "acme", &reader("north", "['*']"));
    let reconciler = Reconciler::new(&[("acme.yaml", without), ("keys.yaml", &keys)]).await;
    let status = reconciler.told("tenant", "acme", 1, "ConfigMapNotFound").await;
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
        reconciler.write("acme.yaml", &broken);
        let status = reconciler.told("tenant", "acme", 1, "BootstrapFailed").await;
        assert!(ready(&status).1.contains("nothing of it stands"), "{status}");
        let mut conn = reconciler.server.connect("acme").await;
        assert_eq!(
            one::<i64>(&mut conn, "select count(*) from pg_namespace where nspname = 'app'").await,
            0,
            "{broken}"
        );
        reconciler.write("acme.yaml", without);
        reconciler.told("tenant", "acme", 1, "ConfigMapNotFound").await;
    }
    reconciler.write("acme.yaml", &good);
    reconciler.told("tenant", "acme", 1, DONE).await;
    reconciler.told("apikey", "north", 1, DONE).await;
}

#[tokio::test]
async fn a_key_that_asks_for_what_is_not_there_is_told() {
    let reconciler = acme(&[]).await;
    for (generation, spec, reason, parts) in [
        (1, reader("north", "[id, nothing]"), "FieldNotFound", ["nothing", "notes"]),
        (
            2,
            reader("north", "[id]").replace("entity: notes", "entity: nodes"),
            "EntityNotFound",
            ["nodes", "not served"],
        ),
    ] {
        reconciler.write("more.yaml", &key("more", "acme", &spec));
        let status = reconciler.told("apikey", "more", generation, reason).await;
        assert!(parts.iter().all(|part| ready(&status).1.contains(part)), "{status}");
    }
    reconciler.write("more.yaml", &key("more", "acme", "secretName: north"));
    let status = reconciler.told("apikey", "more", 3, "Taken").await;
    assert!(ready(&status).1.contains("set secretName"), "{status}");
    reconciler.told("tenant", "acme", 1, DONE).await;
    reconciler.told("apikey", "north", 1, DONE).await;
}

#[tokio::test]
async fn row_level_security_left_out_shows_no_row_and_says_so() {
    let bare = "  shared: {permissions: [{entity: notes, actions: [read]}]}\n  entities:\n    - {name: notes, source: {schema: app, object: notes}}\n";
    let (acme, keys) = (tenant("acme", bare), key("north", "acme", &reader("north", "['*']")));
    let reconciler = Reconciler::new(&[("acme.yaml", &acme), ("keys.yaml", &keys)]).await;
    let status = reconciler.told("tenant", "acme", 1, DONE).await;
    assert!(
        status["warnings"][0].as_str().is_some_and(|text| text.contains("add policies or say none")),
        "{status}"
    );
    reconciler.told("apikey", "north", 1, DONE).await;
    let mut north = connect(&reconciler.key("north", "acme")).await.expect("the key's role");
    assert_eq!(one::<i64>(&mut north, "select count(*) from app.notes").await, 0);
    reconciler.write(
        "acme.yaml",
        &tenant("acme", &bare.replace("object: notes}}", "object: notes}, rowLevelSecurity: {none: true}}")),
    );
    reconciler.told("tenant", "acme", 2, DONE).await;
    assert_eq!(one::<i64>(&mut north, "select count(*) from app.notes").await, 20);
}
