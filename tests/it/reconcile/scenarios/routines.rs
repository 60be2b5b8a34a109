//! A function as an entity comes, is changed by hand, and goes.

use rowgate_core::role::TenantLogin;
use rowgate_tests::servers::postgres::{attempt, connect, execute};
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::ready;
use sqlx::PgConnection;

use super::acme;
use super::quiet::named;
use crate::reconcile::acme::{SPEC, key, one, reader, tenant};

scenarios!(a_function_is_called_by_who_may_and_by_nobody_else_whatever_is_done_by_hand);

const COUNTED: &str =
    "create function app.counted() returns bigint language sql stable as 'select count(*) from app.notes'";

const ENTITY: &str = "    - {name: counted, kind: Procedure, source: {schema: app, object: counted}}\n";

async fn counts(stage: &Stage, key: &str) -> Option<i64> {
    let mut conn = connect(&stage.role(key, "acme").await).await.ok()?;
    attempt(&mut conn, "select app.counted()").await.ok()?;
    Some(one(&mut conn, "select app.counted()").await)
}

async fn served(conn: &mut PgConnection) -> bool {
    one(conn, "select exists (select from dl.entities where name = 'counted')").await
}

/// How it is named that the entity is no longer there to be served.
const CLOSED: &str = "entity counted cannot be served as it is now";

/// What is done by hand, how that is named, and, where Rowgate cannot repair it, what the Tenant is told and how the owner
/// mends it.
const BY_HAND: &[(&str, &str, &str, &str)] = &[
    (
        "revoke execute on function app.counted() from {set}",
        "grant execute on routine app.counted() to {set} (the rights of ApiKey north) is missing",
        "",
        "",
    ),
    (
        "grant execute on function app.counted() to public",
        "grant execute on routine app.counted() to public was added",
        "",
        "",
    ),
    (
        "alter function app.counted() security definer",
        CLOSED,
        "SECURITY DEFINER",
        "alter function app.counted() security invoker",
    ),
    (
        "create function app.counted(a integer) returns bigint language sql return 1",
        CLOSED,
        "overloaded",
        "drop function app.counted(integer)",
    ),
    ("drop function app.counted()", CLOSED, "function or procedure app.counted does not exist", COUNTED),
];

/// Seen to fail with EXECUTE that PUBLIC was given left to it.
async fn a_function_is_called_by_who_may_and_by_nobody_else_whatever_is_done_by_hand(on: On) {
    let mut stage = acme(on).await;
    let mut owner = connect(&stage.login("acme", TenantLogin::Owner).await).await.expect("the owner's login");
    execute(&mut owner, COUNTED).await;
    stage.put(&tenant("acme", &format!("{SPEC}{ENTITY}"))).await;
    stage.told("Tenant", "acme", 2, DONE).await;
    assert_eq!((counts(&stage, "north").await, counts(&stage, "south").await), (None, None));
    let may = |region: &str| {
        reader(region, "['*']")
            .replace("permissions: [", "permissions: [{entity: counted, actions: [execute]}, ")
    };
    stage.put(&key("north", "acme", &may("north"))).await;
    stage.told("ApiKey", "north", 2, DONE).await;
    assert_eq!((counts(&stage, "north").await, counts(&stage, "south").await), (Some(10), None));
    let permissions = stage.status("ApiKey", "north").await["permissions"].to_string();
    assert!(permissions.contains("execute"), "{permissions}");

    let mut superuser = stage.server.connect("acme").await;
    let set: String = one(&mut superuser, "select set_role::text from dl.keys where name = 'north'").await;
    for (script, name, told, mend) in BY_HAND {
        let before = stage.n_events("Tenant", "acme", "Drifted").await;
        execute(&mut owner, &script.replace("{set}", &set)).await;
        until(&format!("an Event about: {script}"), async || {
            (before < stage.n_events("Tenant", "acme", "Drifted").await).then_some(())
        })
        .await;
        named(&stage, &name.replace("{set}", &set)).await;
        if !told.is_empty() {
            let status = stage
                .told(
                    "Tenant",
                    "acme",
                    2,
                    if told.contains("does not exist") { "SourceNotFound" } else { "SourceUnsupported" },
                )
                .await;
            let (_, message) = ready(&status);
            assert!(message.contains("entities[counted]") && message.contains(told), "{message}");
            assert!(!served(&mut superuser).await, "{script}");
            assert_eq!(
                (counts(&stage, "north").await, counts(&stage, "south").await),
                (None, None),
                "{script}"
            );
            execute(&mut owner, mend).await;
        }
        stage.told("Tenant", "acme", 2, DONE).await;
        stage.told("ApiKey", "north", 2, DONE).await;
        until(&format!("the end of: {script}"), async || {
            let right = (counts(&stage, "north").await, counts(&stage, "south").await) == (Some(10), None);
            (right && served(&mut superuser).await).then_some(())
        })
        .await;
    }

    stage.put(&tenant("acme", SPEC)).await;
    until("the end of the entity", async || (!served(&mut superuser).await).then_some(())).await;
    until("the end of calls", async || counts(&stage, "north").await.is_none().then_some(())).await;
    let held = "select count(*) from pg_proc p, aclexplode(p.proacl) a where p.proname = 'counted' and a.grantee <> p.proowner";
    // the set that nobody is in any more is emptied last
    until("nobody who may call it", async || (one::<i64>(&mut owner, held).await == 0).then_some(())).await;
    stage.stop().await;
}
