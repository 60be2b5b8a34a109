//! Every committed change once, in an order that gives the table, and none of what was rolled back.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use rowgate_tests::servers::postgres::{execute, rows};
use serde_json::Value;

use super::fixture::{Bank, cursor};

const N_WRITERS: usize = 4;
const N_ROUNDS: usize = 40;

/// Savepoints, rollbacks, prepared transactions, upserts, MERGE, COPY-like loads, changes of keys, and many rows at once.
async fn write(bank: &Bank, writer: usize) {
    let mut conn = bank.world.superuser("bank").await;
    for round in 0..N_ROUNDS {
        let id = writer * 1000 + round * 10;
        let script = match round % 6 {
            0 => format!(
                "begin; insert into bank.accounts values ({id}, 'north', 1); savepoint a;
                 insert into bank.accounts values ({id} + 1, 'north', 1); rollback to a;
                 update bank.accounts set balance = 2 where id = {id}; commit"
            ),
            1 => format!("begin; insert into bank.accounts values ({id}, 'lost', 1); rollback"),
            2 => format!(
                "insert into bank.accounts select g, 'south', 0 from generate_series({id}, {id} + 5) g
                 on conflict (id) do update set balance = accounts.balance + 1;
                 insert into bank.accounts values ({id}, 'south', 0) on conflict (id) do update set balance = accounts.balance + 10"
            ),
            3 => format!(
                "merge into bank.accounts a using (select {id} as id union all select {id} - 10) s on a.id = s.id
                 when matched and a.balance = 0 then delete when matched then update set balance = a.balance + 1
                 when not matched then insert values (s.id, 'north', 5)"
            ),
            4 => format!("update bank.accounts set id = id + 3 where id = {id} - 10; delete from bank.accounts where id = {id} - 19"),
            _ => format!(
                "update bank.accounts set balance = balance + 1 where id between {} and {id}",
                writer * 1000
            ),
        };
        execute(&mut conn, &script).await;
    }
}

/// The rows that the events come to, by key.
fn replay(events: &[Value]) -> BTreeMap<i64, Value> {
    let mut table = BTreeMap::new();
    for event in events {
        let id = event["key"]["id"].as_i64().expect("an id");
        match event["op"].as_str().expect("an op") {
            "insert" => assert!(table.insert(id, event["data"].clone()).is_none(), "{event}"),
            "update" => assert!(table.insert(id, event["data"].clone()).is_some(), "{event}"),
            "delete" => assert!(table.remove(&id).is_some(), "{event}"),
            other => panic!("{other}"),
        }
    }
    table
}

/// Beside a transaction that is open all the while, with a reader that stops after each page.
#[tokio::test]
async fn each_committed_change_is_given_once_and_in_the_order_of_its_row() {
    let bank = Bank::open().await;
    let start = bank.now("all").await;
    // what one transaction has not committed holds nothing of others back
    let mut long = bank.world.superuser("bank").await;
    execute(&mut long, "begin; insert into bank.accounts values (-1, 'north', 0)").await;
    let reader = async {
        let (mut events, mut after, mut last_id) = (Vec::new(), start.clone(), String::new());
        let is_over = |events: &Vec<Value>| events.iter().any(|event| event["key"]["id"] == -2);
        while !is_over(&events) {
            let page = bank.page("all", &format!("?tables=accounts&after={after}&limit=23&wait=5")).await;
            events.extend(page["events"].as_array().expect("events").iter().cloned());
            cursor(&page).clone_into(&mut after);
            if let Some(last) = page["events"].as_array().and_then(|page| page.last()) {
                last["EventId"].as_str().expect("an id").clone_into(&mut last_id);
            }
        }
        (events, after, last_id)
    };
    let writers = async {
        join_all((0..N_WRITERS).map(|writer| write(&bank, writer))).await;
        bank.sql("insert into bank.accounts values (-2, 'north', 0)").await;
    };
    let ((mut events, after, last_id), ()) = tokio::join!(reader, writers);
    assert!(events.iter().all(|event| event["key"]["id"] != -1), "an event of what is not committed");
    execute(&mut long, "commit").await;
    let (rest, _) = bank.all("all", "accounts", &after).await;
    assert!(rest.iter().any(|event| event["key"]["id"] == -1), "{rest:?}");
    // an EventId is a cursor
    let (same, _) = bank.all("all", "accounts", &last_id).await;
    events.extend(rest);
    let tail: Vec<&Value> =
        events.iter().skip_while(|event| event["EventId"] != last_id.as_str()).skip(1).collect();
    assert_eq!(same.iter().collect::<Vec<_>>(), tail);

    let ids: BTreeSet<&str> = events.iter().filter_map(|event| event["EventId"].as_str()).collect();
    assert_eq!(ids.len(), events.len(), "an event was given twice");
    let mut superuser = bank.world.superuser("bank").await;
    let stored =
        rows(&mut superuser, "select count(*) as n from dl.outbox where rel = 'bank.accounts'::regclass")
            .await;
    // a row that is gone is not given any more, but for its delete
    let given = events.len() as i64;
    assert!(given <= stored[0]["n"].as_i64().expect("a number"), "{given} {stored:?}");
    assert!(200 < given, "{given}");
    assert!(events.iter().all(|event| event["data"]["region"] != "lost"));
    let there = rows(&mut superuser, "select * from bank.accounts order by id").await;
    // a reader that comes late sees of each row the end at least
    let latest: BTreeMap<i64, &Value> =
        events.iter().map(|event| (event["key"]["id"].as_i64().expect("an id"), event)).collect();
    for row in &there {
        let id = row["id"].as_i64().expect("an id");
        assert_eq!(latest[&id]["data"]["balance"], row["balance"], "{row}");
        assert_ne!(latest[&id]["op"], "delete", "{row}");
    }
    let alive: BTreeSet<i64> = there.iter().filter_map(|row| row["id"].as_i64()).collect();
    let ended = latest.iter().filter(|(id, _)| !alive.contains(id));
    ended.for_each(|(id, event)| assert_eq!(event["op"], "delete", "{id}"));
    // what is stored gives the whole table, step by step
    let all = "select case op when 'i' then 'insert' when 'u' then 'update' else 'delete' end as op,
            json_build_object('id', image -> 'id') as key, image as data
        from dl.outbox where rel = 'bank.accounts'::regclass order by seq";
    let stored = rows(&mut superuser, all).await;
    let by_row = |events: &[Value]| -> BTreeMap<i64, Vec<Value>> {
        let mut by_row: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
        for event in events {
            by_row.entry(event["key"]["id"].as_i64().expect("an id")).or_default().push(event.clone());
        }
        by_row
    };
    let mut came_to = BTreeMap::new();
    by_row(&stored).into_values().for_each(|events| came_to.extend(replay(&events)));
    assert_eq!(came_to.keys().copied().collect::<BTreeSet<_>>(), alive);
}
