//! `rowgate tail`: events as they happen, over a restart of the server, until Ctrl-C.

use serde_json::{Value, json};

use super::fixture::{Desk, Running, line};

fn order(id: u32, region: &str) -> String {
    format!("insert into desk.orders values ({id}, '{region}', 'new', 1, 'a {region} order', 1)")
}

async fn event(tail: &mut Running) -> Value {
    let line = line(&mut tail.stdout).await;
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"))
}

/// Ctrl-C, and the cursor that it prints.
async fn interrupted(mut tail: Running) -> String {
    assert_eq!(tail.interrupt().await, Some(130));
    let mut last = String::new();
    while let Some(line) = tail.stderr.next_line().await.expect("it is text") {
        last = line;
    }
    assert_eq!(tail.stdout.next_line().await.expect("it is text"), None, "events alone stand there");
    let cursor =
        last.strip_prefix("stopped; --since ").and_then(|rest| rest.strip_suffix(" goes on from here"));
    cursor.unwrap_or_else(|| panic!("{last}")).to_owned()
}

#[tokio::test]
async fn events_are_shown_over_a_restart_of_the_server_and_from_a_cursor_on() {
    let mut desk = Desk::open().await;
    let mut tail = desk.spawn("all", &["tail", "orders"]);
    let mut north = desk.spawn("north", &["tail"]);
    for it in [&mut tail, &mut north] {
        let said = line(&mut it.stderr).await;
        assert!(
            said.starts_with("following the events after ") && said.ends_with("; Ctrl-C stops"),
            "{said}"
        );
    }
    desk.sql(&order(1001, "south")).await;
    desk.sql(&order(1002, "north")).await;
    let first = event(&mut tail).await;
    assert_eq!(
        (&first["op"], &first["entity"], &first["key"]),
        (&json!("insert"), &json!("orders"), &json!({"id": 1001}))
    );
    assert_eq!(first["data"]["note"], "a south order");
    assert_eq!(event(&mut tail).await["key"], json!({"id": 1002}));
    // The rows and fields of the key alone.
    assert_eq!(event(&mut north).await["data"], json!({"id": 1002, "region": "north", "state": "new"}));

    assert!(desk.world.stop().await.success());
    desk.start().await;
    desk.sql("update desk.orders set note = 'changed' where id = 1002").await;
    for it in [&mut tail, &mut north] {
        let next = event(it).await;
        assert_eq!(
            (&next["op"], &next["key"]),
            (&json!("update"), &json!({"id": 1002})),
            "without a gap or a repeat"
        );
    }
    let cursor = interrupted(tail).await;
    interrupted(north).await;

    desk.sql("delete from desk.orders where id = 1001").await;
    let mut tail = desk.spawn("all", &["tail", "orders", "--since", &cursor]);
    let next = event(&mut tail).await;
    assert_eq!((&next["op"], &next["key"]), (&json!("delete"), &json!({"id": 1001})));
    interrupted(tail).await;

    let mut table =
        desk.spawn("all", &["tail", "orders", "--since", "start", "--ops", "insert", "-o", "table"]);
    assert_eq!(line(&mut table.stderr).await, "following all events that are kept; Ctrl-C stops");
    let shown = line(&mut table.stdout).await;
    let what = "  insert    orders            {\"id\":1002}";
    assert!(shown.contains(what), "the row of the other insert is gone: {shown}");
    interrupted(table).await;
}
