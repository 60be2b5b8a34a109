//! `rowgate get`: rows in each format, filters and pages, and one row by its key.

use serde_json::{Value, json};

use super::fixture::Desk;

#[tokio::test]
async fn rows_are_chosen_and_printed_in_each_format() {
    let desk = Desk::open().await;
    let some =
        ["get", "orders", "--filter", "total lt 5 and region eq 'south'", "--select", "id,state,total,note"];
    let shown = async |format: &str| desk.prints("all", &[&some[..], &["-o", format]].concat()).await;
    assert_eq!(
        shown("table").await,
        "id  state  total  note\n\
         --  -----  -----  -----------------------------\n \
         1  new     1.50  a \"quote\",\\nand \\u{1b}[31mred\n \
         3  paid    4.50  NULL\n"
    );
    assert_eq!(
        shown("csv").await,
        "id,state,total,note\n1,new,1.50,\"a \"\"quote\"\",\nand \u{1b}[31mred\"\n3,paid,4.50,\n"
    );
    let rows = "{\"id\":1,\"state\":\"new\",\"total\":1.50,\"note\":\"a \\\"quote\\\",\\nand \\u001b[31mred\"}\n\
                {\"id\":3,\"state\":\"paid\",\"total\":4.50,\"note\":null}\n";
    assert_eq!(shown("jsonl").await, rows);
    let json = desk.prints("all", &some).await;
    assert_eq!(json, shown("json").await, "JSON where standard output is no terminal");
    assert_eq!(json, format!("[\n{}\n]\n", rows.trim_end().replace('\n', ",\n")));

    let last = ["--orderby", "id desc", "--top", "2", "--expand", "customer($select=name)"];
    let rows = desk.json("all", &[&["get", "orders", "--select", "id"], &last[..]].concat()).await;
    assert_eq!(
        rows,
        json!([{"id": 250, "customer": {"name": "Ada"}}, {"id": 249, "customer": {"name": "Bela"}}])
    );
}

#[tokio::test]
async fn pages_are_followed_as_far_as_is_asked() {
    let desk = Desk::open().await;
    let count = |text: &str| text.lines().count();
    let done = desk.run("all", &["get", "orders", "-o", "jsonl"]).await;
    assert_eq!((done.code, count(&done.stdout)), (0, 100));
    assert_eq!(done.stderr, "these are the first 100 rows; --all prints all, --top N as many as you name\n");
    for (asked, n_rows) in
        [(&["--all"][..], 250), (&["--top", "220"], 220), (&["--top", "300"], 250), (&["--top", "3"], 3)]
    {
        let rows = desk.prints("all", &[&["get", "orders", "-o", "jsonl"], asked].concat()).await;
        assert_eq!(count(&rows), n_rows, "{asked:?}");
    }
    let rows = desk.json("north", &["get", "orders", "--all"]).await;
    let rows = rows.as_array().expect("a list");
    assert_eq!(rows.len(), 125);
    assert!(rows.iter().all(|row| row["region"] == "north" && row.get("total").is_none()), "{rows:?}");

    // Nothing found is a success, and people are told.
    let none = ["get", "orders", "--filter", "id lt 0"];
    assert_eq!(desk.json("all", &none).await, json!([]));
    for format in ["table", "csv"] {
        let done = desk.run("all", &[&none[..], &["-o", format]].concat()).await;
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "", "no rows\n"), "{format}");
    }
}

#[tokio::test]
async fn one_row_is_found_by_its_key() {
    let desk = Desk::open().await;
    let id = async |key: &str| desk.json("all", &["get", "orders", key, "--select", "id"]).await;
    for key in ["7", "id=7", "id/7"] {
        assert_eq!(id(key).await, json!({"id": 7}), "{key}");
    }
    for key in ["order_id=7,line_no=2", "line_no/2/order_id/7"] {
        assert_eq!(desk.json("all", &["get", "lines", key]).await["note"], "second", "{key}");
    }
    // A value is taken whole, or refused: a part of it would be another row.
    let label = async |key: &str| desk.run("all", &["get", "labels", key]).await;
    for (key, n) in [("a", 2), ("a,b", 1), ("code/a,b", 1), ("code=x/y", 3), ("code=p=q", 4)] {
        let done = label(key).await;
        let row: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{key}: {done:?}"));
        assert_eq!(row["n"], n, "{key}");
    }
    assert_eq!(label("code=a,b").await.code, 2);
    assert_eq!(
        desk.prints("all", &["get", "lines", "order_id=7,line_no=1", "-o", "csv"]).await,
        "order_id,line_no,note\n7,1,first\n"
    );
}
