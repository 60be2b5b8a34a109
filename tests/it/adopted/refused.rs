//! What is not adopted, with a sentence each that says what to change.

use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;
use rowgate_tests::world::status::condition;
use serde_json::Value;

use super::fixture::{Store, TENANT};

/// What is done in the application's database, what the manifest says in place of the entity of customers, reason, message.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    (
        "grant select (name) on app.customers to public",
        "",
        "RightsMissing",
        "entities[customers]: PUBLIC has SELECT on app.customers, and so would every key, past its permissions; grant it to the roles that need it instead, then run: revoke all on app.customers from public;",
    ),
    (
        "revoke select (name) on app.customers from public; alter table app.customers enable row level security",
        "",
        "PolicyRefused",
        "entities[customers]: the application has row-level security on app.customers already; set rowLevelSecurity.existing: true, by which its policies hold for keys, too",
    ),
    (
        "alter table app.customers disable row level security; create policy own on app.customers using (id = 1)",
        "",
        "PolicyRefused",
        "entities[customers]: app.customers has policies that are switched off, which would hold for the application's roles once row-level security is enabled; drop them",
    ),
    (
        "drop policy own on app.customers; alter table app.customers force row level security",
        "",
        "PolicyRefused",
        "entities[customers]: row-level security of app.customers is forced on its owner, which would filter the application once it is enabled; alter table app.customers no force row level security",
    ),
    (
        "alter table app.customers no force row level security",
        "    - {name: customers, kind: View, source: {schema: app, object: totals}, keyFields: [region]}\n",
        "ViewUnsafe",
        "entities[customers]: app.totals is a view of the application, which PostgreSQL reads with its owner's rights, past every policy; expose the tables that it reads",
    ),
    (
        "create function app.total() returns bigint security definer language sql as 'select count(*) from app.orders'",
        "    - {name: customers, kind: Procedure, source: {schema: app, object: totals}}\n",
        "SourceUnsupported",
        "entities[customers]: no function of this database is called, because PUBLIC may execute app.total() (SECURITY DEFINER), which no policy filters; grant that to the roles that need it, then take it from PUBLIC: revoke execute on routine app.total() from public;",
    ),
    (
        "drop function app.total()",
        "    - {name: customers, kind: Procedure, source: {schema: app, object: touch}}\n",
        "SourceUnsupported",
        "entities[customers]: app.touch() is a trigger function, which only triggers can call; expose another function",
    ),
    (
        "select",
        "    - {name: customers, source: {schema: app, object: customers}, concurrencyProtection: {writers: All}}\n",
        "SourceUnsupported",
        "entities[customers]: concurrencyProtection.writers: All would refuse the application's own writes to app.customers, which name no version; set it to ApiOnly, or leave it out",
    ),
    (
        "create table app.all_notes (id int primary key, n int) partition by list (id);
         create table app.notes partition of app.all_notes for values in (1)",
        "    - {name: customers, source: {schema: app, object: notes}, rowLevelSecurity: {none: true}}\n",
        "SourceUnsupported",
        "entities[customers]: app.notes is a partition or inherits from another table, whose policies do not hold for it; expose the table above it",
    ),
    (
        "create table app.codes (id int primary key); reset session authorization; alter extension plpgsql add table app.codes",
        "    - {name: customers, source: {schema: app, object: codes}, rowLevelSecurity: {none: true}}\n",
        "SourceUnsupported",
        "entities[customers]: app.codes belongs to an extension; expose a table of your own that is filled from it",
    ),
];

/// A Tenant for another database of the application's role.
const SECOND: &str = "apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: second, namespace: other-team}
spec: {database: {name: second, create: false}}
";

#[tokio::test]
async fn what_keys_would_see_too_much_of_is_refused_and_the_rest_is_served() {
    let mut store = Store::new(&[("store.yaml", TENANT)]).await;
    store.world.spawn(|_| ());
    store.lend().await;
    store.is_served().await;
    let customers = "    - name: customers\n      source: {schema: app, object: customers}\n      rowLevelSecurity: {none: true}\n";
    for (done, entity, reason, message) in REFUSED {
        // the table is given back first
        store.world.write("store.yaml", &TENANT.replace(customers, ""));
        store.says_no_more("customers").await;
        execute(&mut store.as_role("store").await, done).await;
        let entity = if entity.is_empty() { customers } else { entity };
        store.world.write("store.yaml", &TENANT.replace(customers, entity));
        let said = store.says(reason).await;
        assert!(said.contains(message), "{said}\n{message}");
        store.is_served().await;
    }
}

#[tokio::test]
async fn a_database_of_a_superuser_is_not_adopted() {
    let mut store = Store::new(&[("store.yaml", TENANT)]).await;
    execute(&mut store.server.connect("postgres").await, "alter role store superuser").await;
    store.world.spawn(|_| ());
    let said = store.says("NotOwned").await;
    assert!(
        said.contains("database store belongs to store, a superuser, as whom Rowgate runs no statement"),
        "{said}"
    );
    assert!(store.made("t01").await.is_empty());
}

#[tokio::test]
async fn a_database_that_is_not_there_is_not_adopted() {
    let tenant = TENANT.replace("name: store, create", "name: stores, create");
    let mut store = Store::new(&[("store.yaml", &tenant)]).await;
    store.world.spawn(|_| ());
    let said = store.says("SourceNotFound").await;
    assert!(said.contains("database stores does not exist on the server"), "{said}");
}

#[tokio::test]
async fn a_database_whose_owner_owns_that_of_another_team_is_not_adopted() {
    let store = Store::served().await;
    execute(&mut store.server.connect("postgres").await, "create database second owner store").await;
    let said = async |tenant: &str, is: &dyn Fn(&Value) -> bool| {
        until("a condition", async || {
            let status = store.world.status("Tenant", tenant);
            let one = condition(&status, "Ready");
            is(one).then(|| one["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
    };
    let is_taken = |it: &Value| it["reason"] == "Taken";
    let shared = "the database belongs to store, which also owns things in the database of a Tenant in another namespace; give this database, and what store owns in it, to a role of its own";
    let observed = SECOND.replace("namespace:", "annotations: {rowgate.dev/mode: Observe}, namespace:");
    store.world.write("second.yaml", &observed);
    assert_eq!(said("second", &is_taken).await, shared);
    store.world.write("second.yaml", SECOND);
    let id = until("an id", async || {
        Some(store.world.status("Tenant", "second")["tenantId"].as_str()?.to_owned())
    })
    .await;
    assert_eq!(said("second", &is_taken).await, shared);
    assert!(store.made(&format!("t{id}_")).await.is_empty());
    // the one that was there first goes on, and one of its own team may stand beside it
    store.world.edit("store.yaml", "  entities:\n", "  limits: {statementTimeout: 7s}\n  entities:\n");
    said("store", &|it| it["status"] == "True" && it["observedGeneration"] == 2).await;
    let ours = SECOND.replace(", namespace: other-team", "").replace("{name: second}\n", "{name: beside}\n");
    store.world.write("second.yaml", &ours);
    said("beside", &|it| it["status"] == "True").await;
}
