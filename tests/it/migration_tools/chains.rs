//! Each tool runs a chain of twenty migrations with its own command. Clients see at most a 503 for a moment, of the entity that
//! is changed, and what is new is served once the manifest names it.

use std::process::Command;

use rowgate_tests::wait::until;
use serde_json::{Value, json};

use super::fixture::Trade;
use super::load::Load;
use crate::keys::tokens::clients::{packages, tests};

/// Those whose tables a chain changes; `regions` is none of them.
const CHANGED: [&str; 4] = ["customers", "orders", "products", "open_orders"];

/// What the chains have in common when they have run.
async fn runs_under_load(trade: &Trade, command: Command, versions: &str) {
    let load = Load::begin(&trade.world);
    trade.run(command).await;
    trade.is_whole().await;
    let summary = load.ends_well(&CHANGED).await;
    assert!(100 < summary.n && 10 < summary.made.len(), "{summary}");
    summary.agrees_with(&trade.rows("select id from trade.orders where 20000 < id").await);
    assert_eq!(trade.rows(versions).await, [json!({"n": 20})]);
    is_the_end_of_a_chain(trade).await;
}

async fn is_the_end_of_a_chain(trade: &Trade) {
    let counts = "select (select count(*) from trade.suppliers) as suppliers,
        (select count(*) from trade.orders where id <= 20000) as orders,
        (select count(*) from trade.orders where status = 'shipped' and id <= 20000) as shipped,
        to_regclass('trade.orders_old') is null as \"isDropped\"";
    assert_eq!(
        trade.rows(counts).await,
        [json!({"suppliers": 100, "orders": 20000, "shipped": 2000, "isDropped": true})]
    );
    // what no manifest names is closed, for a key with `*` too
    assert_eq!(trade.fields("all", "customers").await, ["id", "name", "region"]);
    assert_eq!(trade.fields("north", "customers").await, ["id", "name", "region"]);
    assert_eq!(trade.fields("all", "orders").await, ["id", "customer", "amount", "status"]);

    trade.world.edit("trade.yaml", "{include: [id, customer,", "{include: [remark, currency, id, customer,");
    let shared = "{entity: customers, actions: [read, create, update], fields: {include: [";
    trade.world.edit("trade.yaml", shared, &format!("{shared}email, "));
    until("a new column", async || {
        let row: Value = trade.first("all", "customers").await?;
        (row["email"] == "c1@example.com").then_some(())
    })
    .await;
    until("the columns of the new table", async || {
        let row = trade.first("all", "orders").await?;
        (row.get("remark").is_some() && row["currency"] == "EUR").then_some(())
    })
    .await;
}

#[tokio::test]
async fn alembic_runs_its_chain_under_load() {
    let trade = Trade::open().await;
    let mut command = Command::new("python3");
    command
        .env("PYTHONPATH", packages().join("python"))
        .env("DATABASE_URL", trade.entry("url"))
        .args(["-B", "-m", "alembic", "--config"])
        .arg(tests().join("clients/migrations/alembic/alembic.ini"))
        .args(["upgrade", "head"]);
    let versions = "select version_num::int as n from trade.alembic_version";
    runs_under_load(&trade, command, versions).await;
}

#[tokio::test]
async fn node_pg_migrate_runs_its_chain_under_load() {
    let trade = Trade::open().await;
    let mut command = Command::new(packages().join("node_modules/.bin/node-pg-migrate"));
    command
        .current_dir(packages())
        .env("DATABASE_URL", trade.entry("url"))
        .env("PGOPTIONS", "-c lock_timeout=4s")
        .args(["up", "--schema", "trade", "--no-single-transaction", "--no-verbose", "--migrations-dir"])
        .arg(tests().join("clients/migrations/node_pg_migrate"));
    let versions = "select count(*) as n from trade.pgmigrations";
    runs_under_load(&trade, command, versions).await;
}

#[tokio::test]
async fn flyway_runs_its_chain_under_load() {
    let trade = Trade::open().await;
    let mut command = Command::new("mvn");
    command
        .env("FLYWAY_URL", trade.entry("jdbcUrl"))
        .args(["--quiet", "--batch-mode", "--offline", "-Dstyle.color=never"])
        .arg(format!("-Dmaven.repo.local={}", packages().join("maven").display()))
        .arg("--file")
        .arg(tests().join("clients/migrations/flyway/pom.xml"))
        .arg("flyway:migrate");
    let versions = "select count(*) as n from trade.flyway_schema_history where success and type = 'SQL'";
    runs_under_load(&trade, command, versions).await;
}
