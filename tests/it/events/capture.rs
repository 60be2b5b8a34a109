//! Which tables are captured, and that they stay so.

use rowgate_tests::servers::postgres::rows;
use rowgate_tests::wait::until;
use serde_json::Value;

use super::fixture::{Bank, told};

async fn triggers(bank: &Bank) -> Vec<String> {
    let text = "select tgrelid::regclass || ' ' || tgname || ' ' || tgenabled::text as it from pg_trigger where tgname like '~dl_capture%' order by 1";
    let rows = rows(&mut bank.world.superuser("bank").await, text).await;
    rows.iter().map(|row| row["it"].as_str().expect("a text").to_owned()).collect()
}

/// Into a partition, past `session_replication_role`, with another key, and by TRUNCATE.
#[tokio::test]
async fn changes_are_captured_whatever_way_they_come() {
    let bank = Bank::open().await;
    let start = bank.now("all").await;
    bank.sql(
        "insert into bank.moves values (1, '2024-05-01', 1, 1), (2, '2025-05-01', 1, 1);
         insert into bank.moves_a values (3, '2024-06-01', 1, 1);
         update bank.moves set at = '2025-05-02', amount = 7 where id = 1;
         set session_replication_role = replica; update bank.moves_b set amount = 9 where id = 2; reset session_replication_role;
         truncate bank.moves",
    )
    .await;
    let (events, after) = bank.all("all", "moves", &start).await;
    // what is gone is not given; that it is gone is
    assert_eq!(told(&events), ["delete 1", "truncate null"], "{events:#?}");
    assert_eq!(events[0]["key"], serde_json::json!({"at": "2024-05-01", "id": 1}));
    assert_eq!(events[1].get("data"), None);
    bank.sql(
        "insert into bank.moves values (1, '2024-05-01', 1, 1), (2, '2025-05-01', 1, 1);
         insert into bank.moves_a values (3, '2024-06-01', 1, 1);
         update bank.moves set at = '2025-05-02', amount = 7 where id = 1;
         set session_replication_role = replica; update bank.moves_b set amount = 9 where id = 2",
    )
    .await;
    let (events, _) = bank.all("all", "moves", &after).await;
    assert_eq!(told(&events), ["insert 2", "insert 3", "delete 1", "insert 1", "update 2"], "{events:#?}");
    assert!(events[2]["cause"].is_string() && events[2]["cause"] == events[3]["cause"], "{events:#?}");
    let tables: Vec<&Value> = events.iter().map(|event| &event["table"]).collect();
    assert!(tables.iter().all(|table| **table == "moves"), "{tables:?}");

    // names of columns that the function has, too
    let start = bank.now("all").await;
    bank.sql("insert into bank.accounts values (9, 'north', 1, 'x', 'y', 3)").await;
    let (events, _) = bank.all("all", "accounts", &start).await;
    assert_eq!((&events[0]["data"]["root"], &events[0]["data"]["n"]), (&"y".into(), &3.into()));
}

#[tokio::test]
async fn triggers_come_back_and_go_with_the_manifest() {
    let bank = Bank::looked_at().await;
    let whole = triggers(&bank).await;
    assert_eq!(whole.len(), 16, "{whole:#?}");
    bank.sql(
        "drop trigger \"~dl_capture_insert\" on bank.accounts; alter table bank.moves_a disable trigger \"~dl_capture_update\";
         create table bank.moves_c partition of bank.moves for values from ('2026-01-01') to ('2027-01-01');
         alter table bank.moves_c owner to current_user",
    )
    .await;
    bank.sql("do $$ begin execute format('alter table bank.moves_c owner to %I', (select pg_get_userbyid(relowner) from pg_class where relname = 'moves_a')); end $$").await;
    until("the triggers", async || {
        let now = triggers(&bank).await;
        (now.len() == 20 && whole.iter().all(|trigger| now.contains(trigger))).then_some(())
    })
    .await;
    bank.sql("insert into bank.accounts values (1, 'north', 1)").await;
    bank.world.edit("bank.yaml", "object: accounts}\n      events: true\n", "object: accounts}\n");
    until("no triggers", async || {
        let now = triggers(&bank).await;
        now.iter().all(|trigger| trigger.starts_with("bank.moves")).then_some(())
    })
    .await;
    until("no events", async || (bank.ask("all", "?tables=accounts").await.status == 400).then_some(()))
        .await;
    assert_eq!(bank.ask("all", "?tables=moves").await.status, 200);
}

/// A table that cannot be captured is told, and the entity is closed.
#[tokio::test]
async fn what_cannot_be_captured_is_said_in_the_status() {
    let bank = Bank::open().await;
    bank.sql("alter table bank.accounts drop constraint accounts_pkey").await;
    bank.world.edit("bank.yaml", "object: accounts}\n", "object: accounts}\n      keyFields: [id]\n");
    let status = until("a finding", async || {
        let status = bank.world.status("Tenant", "bank").to_string();
        status.contains("it has no primary key, by which readers tell rows apart").then_some(status)
    })
    .await;
    assert!(status.contains("SourceUnsupported"), "{status}");
}

/// What is older than the window goes, day by day, and a cursor of before is told so.
#[tokio::test]
async fn events_are_kept_for_seven_days() {
    let bank = Bank::looked_at().await;
    let start = bank.now("all").await;
    bank.sql("insert into bank.accounts values (1, 'north', 1)").await;
    let (_, then) = bank.all("all", "accounts", &start).await;
    // nine days ago
    bank.sql(
        "update dl.outbox set slot = ((current_date - 9) - date '1970-01-01') % 10, at = at - interval '9 days';
         update dl.ticks set at = at - interval '9 days'; update dl.event_log set floor_day = current_date - 9",
    )
    .await;
    bank.sql("insert into bank.accounts values (2, 'north', 1)").await;
    until("fewer events", async || {
        let left =
            rows(&mut bank.world.superuser("bank").await, "select image ->> 'id' as id from dl.outbox").await;
        (left.len() == 1 && left[0]["id"] == "2").then_some(())
    })
    .await;
    let reply = bank.ask("all", &format!("?tables=accounts&after={start}")).await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()["error"]["code"].as_str()),
        (400, Some("InvalidCursor")),
        "{reply:?}"
    );
    assert_eq!(told(&bank.all("all", "accounts", &then).await.0), ["insert 2"]);
    assert_eq!(told(&bank.all("all", "accounts", "start").await.0), ["insert 2"]);
}
