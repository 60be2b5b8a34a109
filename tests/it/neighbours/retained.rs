//! A retained database is its namespace's, or that of the Tenant that the platform team handed it to. To everybody else its
//! names are taken, in the words for any taken name.

mod autovacuum;
mod land;

use rowgate_tests::asked::Asked;
use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::stage::{DONE, On};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::ready;

use self::land::{Land, Team};
use crate::reconcile::acme::{BOOTSTRAP, one};
use crate::reconcile::scenarios::scenarios;

scenarios!(a_retained_database_goes_only_where_the_platform_team_sends_it);

/// What every tenant here exposes.
const ENTITIES: &str = "shared: {permissions: [{entity: notes, actions: [read]}]}, entities: [{name: notes, source: {schema: app, \
                        object: notes}, rowLevelSecurity: {none: true}}]";

const PHASE: &str = "select phase from control.tenants where slug = 'alpha'";
const NOTES: &str = "/auth/alpha/api/notes?$first=1";

fn script() -> String {
    format!("data:\n  schema.sql: |\n    {}\n", BOOTSTRAP.replace('\n', "\n    "))
}

fn bootstrap() -> &'static str {
    "bootstrap: {configMapRef: {name: script}}"
}

/// Seen to fail with a row that whoever brings its slug takes up.
async fn a_retained_database_goes_only_where_the_platform_team_sends_it(on: On) {
    let land = Land::open(on).await;
    let (a, b) = (Team::A, Team::B);
    for team in [a, b] {
        land.put_config_map(team, "script", &script());
    }
    let alpha = format!("{{database: {{{}}}, {ENTITIES}}}", bootstrap());
    land.put(a, "Tenant", "alpha", &alpha);
    land.put(a, "ApiKey", "alpha-key", "{tenantRef: {name: alpha}}");
    land.put(b, "Tenant", "beta", &format!("{{database: {{name: beta_db, {}}}, {ENTITIES}}}", bootstrap()));
    land.put(b, "ApiKey", "beta-key", "{tenantRef: {name: beta}}");
    land.told(b, "ApiKey", "beta-key", DONE).await;
    land.told(a, "ApiKey", "alpha-key", DONE).await;
    let beta = Asked::begin(
        format!("{}/auth/beta/api/notes?$first=1", land.url()),
        land.key(b, "beta-key").await,
        &land.pids(),
    );
    let old = land.key(a, "alpha-key").await;
    let status = land.told(a, "Tenant", "alpha", DONE).await;
    let id = status["tenantId"].as_str().expect("an id").to_owned();
    let database = status["database"].as_str().expect("a name").to_owned();
    assert!(land.opens(&old, NOTES).await);

    let mut control = land.server.connect("rowgate").await;
    for (kind, name) in [("ApiKey", "alpha-key"), ("Tenant", "alpha")] {
        land.remove(a, kind, name);
    }
    until("the end of alpha", async || {
        (one::<String>(&mut control, PHASE).await == "retained").then_some(())
    })
    .await;
    if on == On::Cluster {
        land.gone(a, "Tenant", "alpha").await;
        assert!(land.events(a).contains(&id), "who had it is told its id");
        assert!(!land.events(b).contains(&id), "and nobody else");
    }

    // another team, with its slug, its name, its id as somebody may have seen it, and its database
    let taken = "{slug: SLUG, database: {deletionPolicy: Delete}}";
    let names =
        |id: &str| format!("{{slug: alpha, database: {{deletionPolicy: Delete, adoptRetained: {id}}}}}");
    let nothing = "01k9zv5n2m8q4r6t0w3y7b1d5f";
    land.put(b, "Tenant", "alpha", &taken.replace("SLUG", "alpha"));
    land.put(b, "Tenant", "mine", &taken.replace("SLUG", "alpha"));
    land.put(a, "Tenant", "copy", &taken.replace("SLUG", "beta"));
    land.put(b, "Tenant", "named", &names(&id));
    land.put(b, "Tenant", "guessed", &names(nothing));
    land.put(b, "Tenant", "based", &format!("{{database: {{name: {database}}}}}"));
    land.put(a, "Tenant", "based", "{database: {name: beta_db}}");
    land.put(b, "ApiKey", "thief", "{tenantRef: {name: mine}}");
    let said = async |team, name: &str, reason: &str, from: &str, to: &str| {
        let status = land.told(team, "Tenant", name, reason).await;
        ready(&status).1.replace(from, to)
    };
    let any = said(a, "copy", "SlugTaken", "beta", "*").await;
    for name in ["alpha", "mine"] {
        assert_eq!(said(b, name, "SlugTaken", "alpha", "*").await, any, "nothing tells that it is retained");
    }
    let guessed = said(b, "guessed", "NotRetained", nothing, "*").await.replace("guessed", "named");
    assert_eq!(said(b, "named", "NotRetained", &id, "*").await, guessed);
    let based = said(a, "based", "Taken", "beta_db", "*").await;
    assert_eq!(said(b, "based", "Taken", &database, "*").await, based);
    for (team, name) in [(b, "mine"), (b, "named"), (b, "guessed"), (b, "based"), (a, "based"), (a, "copy")] {
        land.remove(team, "Tenant", name);
        land.gone(team, "Tenant", name).await;
    }
    land.remove(b, "ApiKey", "thief");
    assert_eq!(one::<String>(&mut control, PHASE).await, "retained", "nothing was taken up or dropped");

    // the namespace it was retained in: another Tenant of it is told how, and nothing happens by itself
    land.put(a, "Tenant", "renamed", "{slug: alpha}");
    let status = land.told(a, "Tenant", "renamed", "SlugTaken").await;
    assert!(ready(&status).1.contains(&format!("spec.database.adoptRetained: {id}")), "{status}");

    // the platform team
    let listed = land.retained(&[], "").await.expect("a list");
    for part in [id.as_str(), "alpha", &database, land.name(a), "hand-over", "drop"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    assert!([" kB", " MB"].iter().any(|unit| listed.contains(unit)), "{listed}");
    let to = format!("{}/alpha", land.name(b));
    let unknown = land.retained(&["hand-over", nothing, "--to", &to], "").await;
    assert!(unknown.expect_err("there is none").contains("no database with the id"));
    // keys of before that live again, as those of a backup, and a script of the tenant that does not let them die
    let mut superuser = land.server.connect(&database).await;
    execute(
        &mut superuser,
        "update dl.keys set revoked_at = null; create function app.no() returns trigger language plpgsql as \
         $$ begin raise 'no'; end $$; create trigger no before update on dl.keys execute function app.no()",
    )
    .await;
    let handed = land.retained(&["hand-over", &id, "--to", &to], "").await.expect("it is handed over");
    assert!(handed.contains(&format!("adoptRetained: {id}")), "{handed}");
    let listed = land.retained(&[], "").await.expect("a list");
    assert!(listed.contains(&format!("Tenant {to}, handed over")), "{listed}");
    land.put(a, "Tenant", "renamed", &format!("{{slug: alpha, database: {{adoptRetained: {id}}}}}"));
    land.told(a, "Tenant", "renamed", "NotRetained").await;
    land.put(a, "Tenant", "alpha", &alpha);
    assert_eq!(said(a, "alpha", "SlugTaken", "alpha", "*").await, any, "it is no more theirs than another's");

    land.put(b, "Tenant", "alpha", &format!("{{database: {{adoptRetained: {id}}}, {ENTITIES}}}"));
    land.put(b, "ApiKey", "new", "{tenantRef: {name: alpha}}");
    let status = land.told(b, "Tenant", "alpha", "StatementRefused").await;
    assert!(ready(&status).1.contains("an earlier key is not revoked"), "{status}");
    assert_ne!(one::<String>(&mut control, PHASE).await, "live", "not while a key of before works");
    assert!(!land.opens(&old, NOTES).await);
    execute(&mut superuser, "drop function app.no() cascade").await;
    land.told(b, "ApiKey", "new", DONE).await;
    let status = land.told(b, "Tenant", "alpha", DONE).await;
    assert_eq!((&status["tenantId"], &status["database"]), (&id.clone().into(), &database.clone().into()));
    assert!(land.opens(&land.key(b, "new").await, NOTES).await && !land.opens(&old, NOTES).await);
    let count = "select count(*) as n from app.notes";
    assert_eq!(rows(&mut superuser, count).await[0]["n"], 20, "with its rows");
    drop(superuser);
    assert!(land.retained(&["drop", &id, "--yes"], "").await.is_err(), "it is nobody's to drop");

    // and gone for good
    land.remove(b, "ApiKey", "new");
    land.remove(b, "Tenant", "alpha");
    until("the end of alpha", async || {
        (one::<String>(&mut control, PHASE).await == "retained").then_some(())
    })
    .await;
    land.gone(b, "Tenant", "alpha").await;
    let refused = land.retained(&["drop", &id], "alpha\n").await.expect_err("it was not confirmed");
    assert!(refused.contains("nothing was dropped"), "{refused}");
    // seen to fail with `with (force)` alone, which PostgreSQL refuses to all but superusers then
    autovacuum::begins(&land.server, &database).await;
    let dropped = land.retained(&["drop", &id], &format!("{id}\n")).await.expect("it is dropped");
    assert!(dropped.contains("the slug alpha is free"), "{dropped}");
    let left = "select (select count(*) from pg_database where datname = $1) \
                + (select count(*) from pg_roles where rolname like 't' || $2 || '%')";
    let left = sqlx::query_scalar::<_, i64>(left).bind(&database).bind(&id);
    assert_eq!(left.fetch_one(&mut control).await.expect("it is read"), 0);
    assert_eq!(land.retained(&[], "").await.expect("a list").trim(), "no database is retained");
    // whoever waited for the slug begins from nothing
    let status = land.told(a, "Tenant", "alpha", DONE).await;
    assert_ne!(status["tenantId"], id.as_str());
    beta.always_answered().await;
}
