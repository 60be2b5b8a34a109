//! An export and the events behind its cursor are the table as it is.

use std::collections::BTreeMap;

use rowgate_tests::servers::postgres::{attempt, rows};
use serde_json::{Value, json};

use super::fixture::Depot;

#[tokio::test]
async fn an_export_and_the_events_after_it_give_the_table_under_concurrent_writes() {
    let depot = Depot::open().await;
    for seed in 0..3_u64 {
        let login = depot.server.connect("depot").await;
        let writing = write(login, seed);
        let exporting = depot.export("plain", json!({"entity": "stock", "format": "jsonl"}));
        let ((), (job, bytes)) = tokio::join!(writing, exporting);
        let mut table = BTreeMap::new();
        for line in String::from_utf8(bytes).expect("UTF-8").lines() {
            let row: Value = serde_json::from_str(line).expect("JSON");
            table.insert(row["id"].as_i64().expect("an id"), row);
        }
        let mut cursor = job["eventCursor"].as_str().unwrap_or_else(|| panic!("a cursor: {job}")).to_owned();
        loop {
            let path = format!("/api/ddl/events?tables=stock&limit=1000&after={cursor}");
            let page = depot.send("plain", "GET", &path, "").await.json();
            for event in page["events"].as_array().expect("a list") {
                let id = event["key"]["id"].as_i64().expect("an id");
                match event["op"] == "delete" {
                    true => table.remove(&id),
                    false => table.insert(id, event["data"].clone()),
                };
            }
            cursor = page["cursor"].as_str().expect("a cursor").to_owned();
            if page["hasMore"] == false {
                break;
            }
        }
        let mut connection = depot.server.connect("depot").await;
        let now = rows(&mut connection, "select id, n, note from depot.stock order by id").await;
        assert_eq!(table.into_values().collect::<Vec<_>>(), now, "seed {seed}");
    }
    let (job, _) = depot.export("plain", json!({"entity": "notes", "format": "jsonl"})).await;
    assert!(job["eventCursor"].is_null(), "notes has no events: {job}");
}

/// Updates, deletes and inserts, each a transaction.
async fn write(mut connection: sqlx::PgConnection, seed: u64) {
    for i in 0..300 {
        let id = (i * 7 + seed * 13) % 200 + 1;
        let statement = match i % 5 {
            0 => format!("delete from depot.stock where id = {id}"),
            1 => format!("insert into depot.stock values ({id}, {i}, 'again') on conflict (id) do nothing"),
            _ => format!("update depot.stock set n = n + 1, note = 'n{i}' where id = {id}"),
        };
        attempt(&mut connection, &statement).await.expect("it is written");
    }
}
