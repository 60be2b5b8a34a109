//! `rowgate query`: statements from the command line, a file or standard input, with parameters.

use rowgate_tests::servers::receiver::{Answer, Receiver};
use rowgate_tests::wait::until;
use serde_json::json;

use super::fixture::{Desk, done_with};

const RUNNING: &str = "select query_start as at from pg_stat_activity where datname = 'desk' and state = 'active' and query like '%987654321987%'
  and pid <> pg_backend_pid()";

#[tokio::test]
async fn statements_take_parameters_and_give_rows_in_each_format() {
    let desk = Desk::open().await;
    let sql = "select id, note, total from orders where region = @region and id < @max order by id";
    let asked = ["query", sql, "-p", "region=south", "-p", "max=4"];
    let shown = async |format: &str| desk.prints("all", &[&asked[..], &["-o", format]].concat()).await;
    assert_eq!(
        shown("csv").await,
        "id,note,total\n1,\"a \"\"quote\"\",\nand \u{1b}[31mred\",1.50\n3,,4.50\n"
    );
    let table = shown("table").await;
    assert_eq!(table.lines().last(), Some(" 3  NULL                            4.50"), "{table}");
    assert_eq!(desk.json("all", &asked).await.as_array().map(Vec::len), Some(2));
    let last = "{\"id\":3,\"note\":null,\"total\":4.50}";
    assert_eq!(shown("jsonl").await.lines().nth(1), Some(last), "numbers keep their digits");

    // A value never becomes a part of the statement.
    let value = "text=x' or true --";
    assert_eq!(
        desk.json("all", &["query", "select @text::text as text", "-p", value]).await,
        json!([{"text": "x' or true --"}])
    );
    // The columns are known without a row.
    let none = ["query", "select id, state from orders where false"];
    assert_eq!(desk.prints("all", &[&none[..], &["-o", "csv"]].concat()).await, "id,state\n");
    assert_eq!(desk.prints("all", &[&none[..], &["-o", "table"]].concat()).await, "id  state\n--  -----\n");
    // Rows of the key alone.
    let regions = ["query", "select distinct region from orders"];
    assert_eq!(desk.json("north", &regions).await, json!([{"region": "north"}]));
}

#[tokio::test]
async fn statements_come_from_a_file_or_from_standard_input() {
    let desk = Desk::open().await;
    let file = desk.file("count.sql", "-- how many\nselect count(*) as n\nfrom orders;\n");
    assert_eq!(desk.json("all", &["query", "--file", &file]).await, json!([{"n": 250}]));
    let piped = done_with(desk.command("all", &["query", "-f", "-", "-o", "csv"]), "select 1 as one").await;
    assert_eq!((piped.code, piped.stdout.as_str()), (0, "one\n1\n"), "{piped:?}");
    let empty = done_with(desk.command("all", &["query", "-f", "-"]), " \n").await;
    assert_eq!((empty.code, empty.stderr.as_str()), (2, "error: the statement is empty; give a SELECT\n"));
}

/// What the server leaves out is said.
#[tokio::test]
async fn a_result_that_is_truncated_is_noted() {
    let desk = Desk::open().await;
    let many = ["query", "select n from generate_series(1, 20000) n", "-o", "csv"];
    let done = desk.run("all", &many).await;
    assert_eq!(done.code, 0, "{}", done.stderr);
    let n_rows = done.stdout.lines().count() - 1;
    assert!(
        done.stderr.starts_with(&format!("the result is truncated after {n_rows} rows; ")),
        "{}",
        done.stderr
    );
}

/// Seen to fail with a statement that was sent five times.
#[tokio::test]
async fn a_long_statement_ends_with_ctrl_c_and_is_asked_once_within_the_timeout() {
    let desk = Desk::open().await;
    let long = ["query", "select count(*) as n from generate_series(1, 987654321987)"];
    let mut running = desk.spawn("all", &long);
    until("the statement", async || (desk.seen(RUNNING).await != json!([])).then_some(())).await;
    assert_eq!(running.interrupt().await, Some(130));
    assert_eq!(running.stderr.next_line().await.expect("it is text"), None, "there is nothing to say");

    let silent = Receiver::at("127.0.0.1", |_| Box::pin(async { Answer::Hang })).await;
    let url = silent.url("");
    let said = desk.fails("all", &[&long[..], &["--timeout", "1", "--url", &url]].concat()).await;
    assert_eq!(said, "3 error: no answer within 1 s; --timeout allows more");
    assert_eq!(silent.n_requests(), 1, "a statement that takes long is not started again beside itself");
}
