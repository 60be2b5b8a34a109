//! Rows that a subscription of logical replication writes are captured, each change once.

use rowgate_pg::connect::login::Endpoint;
use rowgate_tests::servers::postgres::{Server, connect, execute, rows};
use rowgate_tests::wait::until;
use sqlx::PgConnection;

use super::fixture::Bank;

const SOURCE: &str = "create schema bank;
    create table bank.accounts (id bigint primary key, region text not null, balance bigint not null, note text, root text, n int);
    create table bank.moves (id bigint not null, at date not null, account bigint, amount bigint, primary key (at, id)) partition by range (at);
    create table bank.moves_a partition of bank.moves for values from ('2024-01-01') to ('2025-01-01');
    create table bank.moves_b partition of bank.moves for values from ('2025-01-01') to ('2026-01-01');
    insert into bank.accounts values (1, 'north', 1), (2, 'north', 1);
    insert into bank.moves values (1, '2024-05-01', 1, 1);
    create publication bank for table bank.accounts, bank.moves with (publish_via_partition_root = true)";

/// Each trigger that captures, and when it fires.
async fn triggers(there: &mut PgConnection) -> Vec<String> {
    let text = "select tgrelid::regclass || ' ' || substr(tgname, 13) || ' ' || tgenabled::text as it from pg_trigger
        where tgname like '~dl_capture%' order by 1";
    rows(there, text).await.iter().map(|row| row["it"].as_str().expect("a text").to_owned()).collect()
}

fn expected(is_replicated: bool) -> Vec<String> {
    let tables = ["bank.accounts", "bank.moves", "bank.moves_a", "bank.moves_b"];
    let firing = if is_replicated { "O" } else { "A" };
    let mut all = Vec::new();
    for table in tables {
        all.extend(["delete", "insert", "update"].map(|name| format!("{table} {name} {firing}")));
        all.push(format!("{table} truncate A"));
        all.extend(is_replicated.then(|| format!("{table} row R")));
    }
    all.sort();
    all
}

async fn captured(there: &mut PgConnection, table: &str) -> Vec<String> {
    let text = format!(
        "select concat_ws(' ', op, image ->> 'id', image ->> 'at') as it from dl.outbox where rel = 'bank.{table}'::regclass order by seq"
    );
    rows(there, &text).await.iter().map(|row| row["it"].as_str().expect("a text").to_owned()).collect()
}

#[tokio::test]
async fn replicated_rows_are_captured_once() {
    let source = Server::with(&["wal_level=logical"]).await;
    execute(&mut source.connect("postgres").await, "create database source").await;
    let publisher = source.superuser("source");
    let Endpoint::Unix { directory, port } = &publisher.endpoint else {
        panic!("tests look through sockets")
    };
    let mut from = connect(&publisher).await.expect("it runs");
    execute(&mut from, SOURCE).await;

    let server = Server::own().await;
    let bank = Bank::on(&server).await;
    let mut there = server.connect("bank").await;
    until("the triggers", async || (triggers(&mut there).await == expected(false)).then_some(())).await;
    let subscribe = format!(
        "create subscription bank connection 'host={} port={port} dbname=source user={} password={}' publication bank
         with (enabled = false, run_as_owner = true)",
        directory.display(),
        publisher.role,
        publisher.password.reveal()
    );
    execute(&mut there, &subscribe).await;
    until("triggers for rows", async || (triggers(&mut there).await == expected(true)).then_some(())).await;
    execute(&mut there, "drop trigger \"~dl_capture_row\" on bank.accounts").await;
    execute(&mut there, "alter table bank.moves_a disable trigger \"~dl_capture_row\"").await;
    until("their repair", async || (triggers(&mut there).await == expected(true)).then_some(())).await;

    execute(&mut there, "alter subscription bank enable").await;
    let ready = "select count(*) = 2 as it from pg_subscription_rel where srsubstate = 'r'";
    until("the first copy", async || (rows(&mut there, ready).await[0]["it"] == true).then_some(())).await;
    for change in [
        "update bank.accounts set balance = 2 where id = 1",
        "update bank.accounts set id = 9 where id = 2",
        "insert into bank.accounts values (3, 'north', 1)",
        "delete from bank.accounts where id = 3",
        "update bank.moves set at = '2025-05-02' where id = 1",
        "truncate bank.moves",
        "insert into bank.moves values (7, '2024-05-01', 1, 1)",
    ] {
        execute(&mut from, change).await;
    }
    until("the last change", async || {
        (rows(&mut there, "select count(*) as n from bank.moves where id = 7").await[0]["n"] == 1)
            .then_some(())
    })
    .await;
    // beside the apply worker people write, and those who load rows past triggers
    execute(&mut there, "insert into bank.accounts values (20, 'north', 1)").await;
    execute(
        &mut there,
        "set session_replication_role = replica; insert into bank.accounts values (21, 'north', 1);
         insert into bank.moves values (22, '2025-05-01', 1, 1); reset session_replication_role",
    )
    .await;
    assert_eq!(
        captured(&mut there, "accounts").await,
        ["i 1", "i 2", "u 1", "d 2", "i 9", "i 3", "d 3", "i 20", "i 21"]
    );
    assert_eq!(
        captured(&mut there, "moves").await,
        ["i 1 2024-05-01", "d 1 2024-05-01", "i 1 2025-05-02", "t", "i 7 2024-05-01", "i 22 2025-05-01"]
    );
    let cause = "select count(distinct cause) as n, count(*) as of from dl.outbox where cause is not null";
    let cause = rows(&mut there, cause).await.remove(0);
    assert_eq!((&cause["n"], &cause["of"]), (&1.into(), &2.into()));
    assert_eq!(bank.all("all", "moves", "start").await.0.len(), 4, "the truncate and what is there since");

    execute(&mut there, "drop subscription bank").await;
    until("the triggers of before", async || (triggers(&mut there).await == expected(false)).then_some(()))
        .await;
}
