//! The life of a key: revoked in three ways, scoped and unscoped, widened by its next generation, expired.

use rowgate_core::role::TenantLogin;
use rowgate_tests::servers::postgres::{attempt, connect, execute};
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::ready;

use crate::reconcile::acme::{key, one, reader};
use crate::reconcile::scenarios::{NOTES, acme};

scenarios!(
    a_key_is_revoked_for_good_in_three_ways,
    a_key_becomes_scoped_and_unscoped_again,
    every_column_means_those_of_that_generation,
    a_key_expires_by_the_clock_of_the_database,
);

/// Seen to fail in the folder, now and then, with a source that writes the Secret of a key which is gone: a pass that began
/// before took it for one that somebody had deleted.
async fn a_key_is_revoked_for_good_in_three_ways(on: On) {
    let mut stage = acme(on).await;
    let mut strings = Vec::new();
    for name in ["web", "north", "south"] {
        let string = stage.key(name).await;
        assert!(stage.opens(&string, NOTES).await);
        strings.push(string);
    }
    let [web, north, south] = &strings[..] else { panic!("three keys") };
    let mut conn = stage.server.connect("acme").await;

    // by the login of look-ups in the database: dead at the COMMIT, noted by the next look, the role closed
    let role = stage.role("north", "acme").await;
    let mut lookups =
        connect(&stage.login("acme", TenantLogin::Lookups).await).await.expect("the login of look-ups");
    execute(&mut lookups, &format!("select dl.revoke('{}')", stage.id("north").await)).await;
    assert!(!stage.opens(north, NOTES).await);
    let status = stage.told("ApiKey", "north", 1, "Revoked").await;
    let revoked_at = status["revokedAt"].clone();
    assert!(revoked_at.is_string(), "{status}");
    until("the role to be closed", async || connect(&role).await.err()).await;
    // never undone, and no drift: somebody meant it
    stage.put(&key("north", "acme", &reader("south", "[id]"))).await;
    let status = stage.told("ApiKey", "north", 2, "Revoked").await;
    assert_eq!(status["revokedAt"], revoked_at);
    assert!(ready(&status).1.contains("create a new ApiKey"), "{status}");
    assert!(!stage.opens(north, NOTES).await);
    assert_eq!(stage.n_events("Tenant", "acme", "Drifted").await, 0);

    // by the manifest
    stage.put(&key("web", "acme", "revoked: true")).await;
    stage.told("ApiKey", "web", 2, "Revoked").await;
    assert!(!stage.opens(web, NOTES).await);
    assert!(stage.opens(south, NOTES).await);

    // by deleting it: the role goes, the row stays and is revoked, the Secret goes
    let (role, id) = (stage.role("south", "acme").await.role, stage.id("south").await);
    let mark = stage.mark();
    stage.remove("ApiKey", "south").await;
    until("the Secret to go", async || stage.secret("south").await.is_none().then_some(())).await;
    stage.gone("ApiKey", "south").await;
    if stage.holds_deleted() {
        // the server writes a line of its audit log once it has answered
        let released = async || {
            let writes = stage.writes_since(&mark);
            writes.contains(&"patch apikeys/south".to_owned()).then_some(writes)
        };
        let writes = until("the release in the audit log", released).await;
        let at = |write: &str| writes.iter().position(|it| it == write);
        let (secret, release) = (at("delete secrets/south"), at("patch apikeys/south"));
        assert!(secret.is_some() && secret < release, "the Secret goes before the key: {writes:?}");
    }
    until("the key to be dead", async || (!stage.opens(south, NOTES).await).then_some(())).await;
    let there = format!("select 1 / (select count(*) from pg_roles where rolname = '{role}')");
    until("the role to go", async || attempt(&mut conn, &there).await.err()).await;
    let row =
        format!("select 1 / (select count(*) from dl.keys where id = '{id}' and revoked_at is not null)");
    execute(&mut conn, &row).await;
    // a key of the same name is another key
    stage.put(&key("south", "acme", &reader("south", "[id, body]"))).await;
    stage.told("ApiKey", "south", 1, DONE).await;
    assert!(!stage.opens(south, NOTES).await);
    assert!(stage.opens(&stage.key("south").await, NOTES).await);
    until("the Tenant's one key", async || (stage.status("Tenant", "acme").await["keys"] == 1).then_some(()))
        .await;
}

async fn a_key_becomes_scoped_and_unscoped_again(on: On) {
    let mut stage = acme(on).await;
    assert_eq!(stage.status("ApiKey", "web").await["role"], "datalake_user");
    let string = stage.key("web").await;
    let mut conn = stage.server.connect("acme").await;
    let assigned = "select set_role::text from dl.keys where name = 'web'";
    for (generation, spec, role) in [
        (2, reader("north", "[id]"), "key_"),
        (3, String::new(), "datalake_user"),
        (4, "claims: {region: south}, scope: {sameAs: shared}".to_owned(), "key_"),
    ] {
        stage.put(&key("web", "acme", &spec)).await;
        let status = stage.told("ApiKey", "web", generation, DONE).await;
        let told = status["role"].as_str().expect("a role");
        assert!(told.starts_with(role), "{status}");
        assert_eq!(stage.secret("web").await.expect("a Secret")["role"], told);
        assert_eq!(stage.key("web").await, string, "the secret is the same");
        assert!(stage.opens(&string, NOTES).await);
        let set = one::<Option<String>>(&mut conn, assigned).await.expect("it has its rights");
        assert_eq!(set == "datalake_user", role == "datalake_user");
    }
    let mut web = connect(&stage.role("web", "acme").await).await.expect("the key's role");
    assert_eq!(
        one::<String>(&mut web, "select string_agg(distinct region, ' ') from app.notes").await,
        "south"
    );
    execute(&mut web, "delete from app.notes where region = 'south'").await;
}

async fn every_column_means_those_of_that_generation(on: On) {
    let mut stage = acme(on).await;
    let mut conn = stage.server.connect("acme").await;
    let mut north = connect(&stage.role("north", "acme").await).await.expect("the key's role");
    execute(&mut conn, "alter table app.notes add later text default 'x'").await;
    let permissions = async |stage: &Stage, generation| {
        stage.told("ApiKey", "north", generation, DONE).await["permissions"].to_string()
    };
    // a look that surely came after the column: it made the next key
    stage.put(&key("new", "acme", "")).await;
    stage.told("ApiKey", "new", 1, DONE).await;
    assert!(attempt(&mut north, "select later from app.notes").await.is_err());
    assert!(!permissions(&stage, 1).await.contains("later"));
    let edited = reader("north", "['*']").replace("region: north}", "region: north, more: 'yes'}");
    stage.put(&key("north", "acme", &edited)).await;
    assert!(permissions(&stage, 2).await.contains("later"));
    execute(&mut north, "select later from app.notes").await;
}

async fn a_key_expires_by_the_clock_of_the_database(on: On) {
    let mut stage = acme(on).await;
    let (past, future) = ("expiresAt: '2020-01-01T00:00:00Z'", "expiresAt: '2999-01-01T00:00:00Z'");
    stage.put(&(key("old", "acme", past) + &key("young", "acme", future))).await;
    let status = stage.told("ApiKey", "old", 1, "Expired").await;
    assert!(ready(&status).1.contains("set a later expiresAt"), "{status}");
    stage.told("ApiKey", "young", 1, DONE).await;
    let (old, young) = (stage.key("old").await, stage.key("young").await);
    assert!(stage.opens(&young, NOTES).await);
    assert!(!stage.opens(&old, NOTES).await);
    stage.put(&(key("old", "acme", "") + &key("young", "acme", past))).await;
    stage.told("ApiKey", "old", 2, DONE).await;
    stage.told("ApiKey", "young", 2, "Expired").await;
    assert!(stage.opens(&old, NOTES).await);
    assert!(!stage.opens(&young, NOTES).await);
}
