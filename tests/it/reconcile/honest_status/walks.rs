//! Creation, edits, an error of the user, a rotation of rights, deletion: between any two transactions of the operator nothing
//! is said to be there that is not. Hands and outages: nothing is said for longer than it is true.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;
use rowgate_tests::world::status::ready;

use super::stage::{Stage, Wanted, key, scoped, tenant};

const ALL: &str = "['*']";

const fn of_tenant(generation: i64, held: Option<&'static str>) -> Wanted {
    Wanted { resource: "tenants", name: "acme", generation, key: "web", held }
}

const fn of_key(name: &'static str, generation: i64, held: Option<&'static str>) -> Wanted {
    Wanted { resource: "apikeys", name, generation, key: name, held }
}

/// Seen to fail with a Tenant that is told to be done and served when a pass over it begins.
#[tokio::test]
async fn what_is_made_is_current_when_it_is_there_and_not_before() {
    let stage = Stage::new(Some(1)).await;
    // the first transactions make roles and the database, the last one says which generation is to be served
    let mut turnstile = stage.turnstile("rowgate", "control.leader").await;
    let keys = [("web", key("web", "acme", "")), ("north", key("north", "acme", &scoped(ALL, "north")))];
    stage.declare(&tenant("acme", ALL, "south", "true"), &keys).await;
    let made = [
        of_tenant(1, Some("body,id,region:5")),
        of_key("web", 1, Some("body,id,region:5")),
        of_key("north", 1, Some("body,id,region:3")),
    ];
    let walk = stage.walk(&mut turnstile, &made).await;
    assert!(5 <= walk.n_turns && 5 <= walk.n_different, "{walk:?}");

    stage.namespace.apply(&tenant("acme", ALL, "north", "true")).await.ok();
    let walk = stage.walk(&mut turnstile, &[of_tenant(2, Some("body,id,region:3"))]).await;
    assert!(1 <= walk.n_turns, "{walk:?}");
}

/// What is edited, and what is read after that. The turnstile stands in the tenant's database.
///
/// Seen to fail with what the last pass has found told of the new generation when a pass begins, and with statuses that say
/// the first generation for ever.
#[tokio::test]
async fn what_is_edited_is_current_when_the_database_follows_and_not_before() {
    let stage = Stage::new(Some(1)).await;
    let keys = [("web", key("web", "acme", "")), ("north", key("north", "acme", &scoped(ALL, "north")))];
    stage.declare(&tenant("acme", ALL, "south", "true"), &keys).await;
    let all = "body,id,region:3";
    stage.settle(&[of_tenant(1, Some("body,id,region:5")), of_key("north", 1, Some(all))]).await;
    let mut turnstile = stage.turnstile("acme", "dl.state").await;
    for (what, manifest, wanted) in [
        ("a claim", tenant("acme", ALL, "north", "true"), of_tenant(2, Some("body,id,region:3"))),
        ("fields", tenant("acme", "[id, region]", "north", "true"), of_tenant(3, Some("id,region:3"))),
        ("a policy", tenant("acme", "[id, region]", "south", "id < 6"), of_tenant(4, Some("id,region:2"))),
        (
            "a key's claim",
            key("north", "acme", &scoped(ALL, "south")),
            of_key("north", 2, Some("body,id,region:2")),
        ),
        ("a key's fields", key("north", "acme", &scoped("[id]", "south")), of_key("north", 3, Some("id:2"))),
        ("an error", tenant("acme", "[id, region]", "south", "no_such_column = 1"), of_tenant(5, None)),
        ("its remedy", tenant("acme", ALL, "north", "id < 3"), of_tenant(6, Some("body,id,region:2"))),
        (
            "a revocation",
            key("north", "acme", &format!("{}, revoked: true", scoped("[id]", "south"))),
            of_key("north", 4, None),
        ),
    ] {
        stage.namespace.apply(&manifest).await.ok();
        let walk = stage.walk(&mut turnstile, &[wanted]).await;
        assert!(1 <= walk.n_turns && 1 <= walk.n_different, "{what}: {walk:?}");
    }
}

/// Seen to fail with objects that are released before their keys are revoked.
#[tokio::test]
async fn what_is_deleted_is_gone_when_no_key_of_it_lives_and_not_before() {
    let stage = Stage::new(Some(1)).await;
    let keys = [("web", key("web", "acme", "")), ("north", key("north", "acme", &scoped(ALL, "north")))];
    stage.declare(&tenant("acme", ALL, "south", "true"), &keys).await;
    stage
        .settle(&[of_key("web", 1, Some("body,id,region:5")), of_key("north", 1, Some("body,id,region:3"))])
        .await;
    let mut turnstile = stage.turnstile("acme", "dl.state").await;
    for (object, wanted) in [("apikey/north", of_key("north", 2, None)), ("tenant/acme", of_tenant(2, None))]
    {
        stage.namespace.kubectl(&["delete", object, "--wait=false"]).await.ok();
        let walk = stage.walk(&mut turnstile, &[wanted]).await;
        assert!(1 <= walk.n_turns, "{object}: {walk:?}");
    }
}

/// What is changed by hand in tenant `acme`, the fence that the first transaction of the repair meets, and how the change is
/// named.
const BY_HAND: [(&str, &str, &str, &str); 6] = [
    ("acme", "delete from dl.claims", "dl.state", "claim region of datalake_user is missing"),
    ("acme", "drop policy own_region on app.notes", "dl.state", "policy own_region on app.notes is missing"),
    (
        "acme",
        "grant insert on app.notes to datalake_user",
        "dl.state",
        "grant insert on app.notes to datalake_user was added",
    ),
    (
        "acme",
        "alter table app.notes force row level security",
        "dl.state",
        "row-level security of app.notes is forced on its owner",
    ),
    (
        "rowgate",
        "revoke datalake_user from {auth} granted by rowgate_operator",
        "control.leader",
        "role {auth} is not a member of datalake_user",
    ),
    (
        "rowgate",
        "alter role {auth} connection limit 0",
        "control.leader",
        "role {auth} has the connection limit 0",
    ),
];

/// Where the repair of a change by hand begins, `Ready` is gone.
///
/// Seen to fail with drift that is repaired without a word, and with a replica that comes meanwhile and has everything told
/// anew as it was.
#[tokio::test]
async fn what_a_hand_has_changed_is_not_current_while_it_is_repaired() {
    let stage = Stage::new(Some(1)).await;
    stage.declare(&tenant("acme", ALL, "south", "true"), &[("web", key("web", "acme", ""))]).await;
    let wanted = [of_tenant(1, Some("body,id,region:5")), of_key("web", 1, Some("body,id,region:5"))];
    stage.settle(&wanted).await;
    let status = &stage.namespace.get("tenants", "acme").await.expect("it is there")["status"];
    let auth = format!("t{}_auth", status["tenantId"].as_str().expect("it has its id"));
    for (database, change, fence, name) in BY_HAND {
        let mut conn = stage.server.connect(database).await;
        let mut turnstile = stage.turnstile(database, fence).await;
        execute(&mut conn, &change.replace("{auth}", &auth)).await;
        until(&format!("the repair after {change:?}"), async || turnstile.is_met().await.then_some(())).await;
        // and as long as it is not repaired, whoever comes and goes meanwhile
        let objects = [("tenants", "acme"), ("apikeys", "web")];
        let another = stage.operator.data_plane(&stage.namespace, &stage.server).await;
        stage.polls(2).await;
        for (resource, name) in objects {
            assert_eq!(stage.says(resource, name).await, ("Drifted".to_owned(), false), "{change}");
        }
        assert!(another.end(Signal::SIGTERM).await.success());
        stage.polls(2).await;
        for (resource, name) in objects {
            assert_eq!(stage.says(resource, name).await, ("Drifted".to_owned(), false), "{change}");
        }
        for (resource, object) in objects {
            let status = &stage.namespace.get(resource, object).await.expect("it is there")["status"];
            let (_, message) = ready(status);
            let wanted = format!("was changed by hand; repairing: {}", name.replace("{auth}", &auth));
            assert!(message.ends_with(&wanted), "{message}");
        }
        stage.go_on_from_here().await;
        turnstile.open().await;
        stage.settle(&wanted).await;
    }
}

/// The promise is 30 s from the change to the word, with an operator as it is installed and nobody who asks: a policy is
/// dropped and a key revoked in the database itself, and then PostgreSQL dies.
///
/// Seen to fail with a revocation beside which drift is repaired without a word, and with an operator that says `Ready` as soon
/// as the control database answers again.
#[tokio::test]
async fn what_happens_to_the_database_is_told_within_30_seconds() {
    let mut stage = Stage::new(None).await;
    let keys = [("web", key("web", "acme", "")), ("north", key("north", "acme", &scoped(ALL, "north")))];
    stage.declare(&tenant("acme", ALL, "south", "true"), &keys).await;
    let web = [of_tenant(1, Some("body,id,region:5")), of_key("web", 1, Some("body,id,region:5"))];
    stage.settle(&web).await;
    stage.settle(&[of_key("north", 1, Some("body,id,region:3"))]).await;

    let mut conn = stage.server.connect("acme").await;
    let (turnstile, changed) = (stage.turnstile("acme", "dl.state").await, Instant::now());
    execute(&mut conn, "drop policy own_region on app.notes").await;
    execute(&mut conn, "select dl.revoke(id) from dl.keys where name = 'north'").await;
    stage.told_in_time("a dropped policy", changed, "tenants", "acme", "Progressing").await;
    stage.go_on_from_here().await;
    turnstile.open().await;
    stage.told_in_time("a revocation", changed, "apikeys", "north", "Revoked").await;
    stage.settle(&web).await;

    // what the replica saw of the repair has been looked at, too
    stage.polls(4).await;
    // what comes back will lack the last commits, of the operator and of the replica, as a standby may that takes over
    let lost = [("acme", "delete from dl.claims"), ("rowgate", "delete from control.served")];
    for (database, change) in lost {
        let mut conn = stage.server.connect(database).await;
        execute(&mut conn, &format!("set synchronous_commit = on; {change}")).await;
    }
    let died = Instant::now();
    stage.server.kill().await;
    for (resource, name) in [("tenants", "acme"), ("apikeys", "web")] {
        stage.told_in_time("a dead database", died, resource, name, "DatabaseUnavailable").await;
    }
    stage.go_on_from_here().await;
    stage.server.start_again().await;
    stage.settle(&web).await;
}

impl Stage {
    async fn told_in_time(&self, what: &str, since: Instant, resource: &str, name: &str, reason: &str) {
        let told = (reason.to_owned(), false);
        until(what, async || (self.says(resource, name).await == told).then_some(())).await;
        assert!(since.elapsed() < Duration::from_secs(30), "{what}: {:?}", since.elapsed());
    }
}
