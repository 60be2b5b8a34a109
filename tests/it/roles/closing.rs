//! A statement that PostgreSQL refuses closes what it belongs to, a key or the keys of a permission set, and all else
//! goes on. Constraints that somebody set on tables of `dl` stand for whatever may refuse one.

use rowgate_tests::postgres::{attempt, connect, execute};
use rowgate_tests::reconciler::{DONE, Reconciler, ready};
use rowgate_tests::wait::until;
use serde_json::Value;
use sqlx::PgConnection;

use super::{acme, key, one, reader};

/// What refuses, the scope of `north` that meets it, and whether its claim does not reach the database.
const REFUSALS: [(&str, &str, &str); 2] = [
    (
        "dl.claims",
        "value <> 'mars'",
        "claims: {region: mars}, scope: {permissions: [{entity: notes, actions: [read], fields: {include: ['*']}}]}",
    ),
    (
        "dl.permission_sets",
        "not permissions::text like '%update%'",
        "claims: {region: north}, scope: {permissions: [{entity: notes, actions: [read, update], fields: {include: [body]}}]}",
    ),
];

fn keys(north: &str, south: &str) -> String {
    [key("web", "acme", ""), key("north", "acme", north), key("south", "acme", south)].concat()
}

async fn refuse(conn: &mut PgConnection, table: &str, check: &str) {
    execute(conn, &format!("alter table {table} add constraint ours check ({check}) not valid")).await;
}

async fn reads(reconciler: &Reconciler, key: &str, text: &str) -> bool {
    match connect(&reconciler.key(key, "acme")).await {
        Ok(mut conn) => attempt(&mut conn, text).await.is_ok(),
        Err(_) => false,
    }
}

/// Transactions that were rolled back in the tenant's database: each try ends in one.
async fn tries(conn: &mut PgConnection) -> i64 {
    execute(conn, "select pg_stat_clear_snapshot()").await;
    one(conn, "select xact_rollback from pg_stat_database where datname = 'acme'").await
}

fn drifts(reconciler: &Reconciler) -> Vec<Value> {
    let file = reconciler.file("tenant", "acme").expect("it was told something");
    let events = file["events"].as_array().cloned().unwrap_or_default();
    events.into_iter().filter(|event| event["reason"] == "Drifted").collect()
}

/// Seen to fail with statements that belong to the whole tenant (`south` keeps `body`), with a closed key that is left in
/// its permission set, and with passes that call their next try drift.
#[tokio::test]
async fn a_refused_statement_closes_its_key_and_all_else_goes_on() {
    for (table, check, scope) in REFUSALS {
        let reconciler = acme(&[]).await;
        reconciler.told("tenant", "acme", 1, DONE).await;
        let mut conn = reconciler.server.connect("acme").await;
        refuse(&mut conn, table, check).await;
        assert!(reads(&reconciler, "north", "select id from app.notes").await);
        assert!(reads(&reconciler, "south", "select body from app.notes").await);

        reconciler.write("keys.yaml", &keys(scope, &reader("south", "[id, region]")));
        let told = reconciler.told("apikey", "north", 2, "StatementRefused").await;
        let (_, message) = ready(&told);
        assert!(message.contains("23514") && message.contains("denied everything"), "{message}");
        reconciler.told("apikey", "south", 2, DONE).await;
        reconciler.told("tenant", "acme", 1, DONE).await;
        assert!(!reads(&reconciler, "south", "select body from app.notes").await, "{table}: narrowed");
        assert!(reads(&reconciler, "south", "select region from app.notes").await, "{table}");
        assert!(!reads(&reconciler, "north", "select 1").await, "{table}: closed");
        let held = "select count(*) from dl.keys where name = 'north' and (set_role is not null or revoked_at is not null)";
        assert_eq!(
            one::<i64>(&mut conn, held).await,
            0,
            "{table}: closed for the data planes, and not for good"
        );
        let of_south = "select generation from dl.state";
        let generation = one::<i64>(&mut conn, of_south).await;
        // a later pass tries again, and calls nothing of it drift
        let before = tries(&mut conn).await;
        until("another try", async || (before + 3 < tries(&mut conn).await).then_some(())).await;
        assert_eq!(drifts(&reconciler), Vec::<Value>::new(), "{table}: nobody changed the database by hand");

        execute(&mut conn, &format!("alter table {table} drop constraint ours")).await;
        reconciler.told("apikey", "north", 2, DONE).await;
        assert!(reads(&reconciler, "north", "select id from app.notes").await, "{table}: mended");
        assert!(generation < one::<i64>(&mut conn, of_south).await, "{table}: the data planes are told");
        assert_eq!(drifts(&reconciler), Vec::<Value>::new(), "{table}");
    }
}

/// An unscoped key is every other unscoped key in the database, so its row alone closes it. Seen to fail with a closed
/// key whose row keeps its permission set.
#[tokio::test]
async fn a_refused_unscoped_key_is_denied_by_its_row() {
    let reconciler = acme(&[]).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    let mut conn = reconciler.server.connect("acme").await;
    refuse(&mut conn, "dl.keys", "expires_at is null").await;
    let other = key("other", "acme", "");
    let soon = key("web", "acme", "expiresAt: 2099-01-01T00:00:00Z");
    reconciler.write("keys.yaml", &format!("{soon}{other}"));
    reconciler.told("apikey", "web", 2, "StatementRefused").await;
    reconciler.told("apikey", "other", 1, DONE).await;
    let sets = "select string_agg(name || '=' || coalesce(set_role::text, 'none'), ' ' order by name) \
                from dl.keys where name in ('web', 'other')";
    assert_eq!(one::<String>(&mut conn, sets).await, "other=datalake_user web=none");
}

/// Seen to fail with a revocation that belongs to the whole tenant.
#[tokio::test]
async fn a_refused_revocation_stops_no_other_and_closes_the_role() {
    let reconciler = acme(&[]).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    let (north, south) = (reconciler.key("north", "acme"), reconciler.key("south", "acme"));
    let mut conn = reconciler.server.connect("acme").await;
    refuse(&mut conn, "dl.keys", "revoked_at is null or name <> 'north'").await;
    reconciler.write("keys.yaml", &key("web", "acme", ""));
    let told = reconciler.told("tenant", "acme", 1, "StatementRefused").await;
    assert!(ready(&told).1.contains("could not be revoked"), "{told}");
    for login in [&north, &south] {
        assert!(connect(login).await.is_err(), "{} holds nothing any more", login.role);
    }
    let alive = "select string_agg(name, ' ' order by name) from dl.keys where revoked_at is null";
    assert_eq!(one::<String>(&mut conn, alive).await, "north web");
    execute(&mut conn, "alter table dl.keys drop constraint ours").await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    assert_eq!(one::<String>(&mut conn, alive).await, "web");
}
