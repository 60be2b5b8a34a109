//! The rules of FOR JSON on a real PostgreSQL: the table is `for_json.txt`, its expected JSON is written by hand.

use rowgate_sql::for_json::{Variable, translate};
use rowgate_tests::servers::postgres::{execute, shared};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _, raw_sql};

const CASES: &str = include_str!("for_json.txt");

const TABLES: &str = r#"
    set timezone = 'UTC';
    create schema app;
    create table app.customers (id int primary key, name text, city text);
    insert into app.customers values (1, 'Ann', 'Rome'), (2, 'Bob', null);
    create table app.orders (id int primary key, customer_id int, total numeric(10, 2), note text, placed timestamp,
        doc jsonb, raw bytea, ok bool);
    insert into app.orders values
        (10, 1, 9.50, 'first', '2024-01-02 03:04:05', '{"a": 1}', 'ab', true),
        (11, 1, 20.00, null, '2024-01-03', null, null, false),
        (12, 2, 0.00, 'say "hi" \ /', null, '[1, 2]', '', null);
    create table app.lines (order_id int, n int, sku text, qty int, primary key (order_id, n));
    insert into app.lines values (10, 1, 'A', 2), (10, 2, 'B', 1), (11, 1, 'C', 5);
"#;

const VALUES: [(&str, &str, &str); 5] = [
    ("Id", "integer", "10"),
    ("dl_op", "text", "update"),
    ("dl_table", "text", "orders"),
    ("dl_schema", "text", "app"),
    ("dl_rowKeyJson", "text", r#"{"Id":10}"#),
];

#[tokio::test]
async fn for_json_gives_what_the_table_says() {
    let mut connection = shared().await.database("for_json").await;
    execute(&mut connection, TABLES).await;
    let lines: Vec<&str> = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let mut misses = Vec::new();
    for (n, case) in lines.chunks(2).enumerate() {
        let [query, expected] = case else { panic!("a case has two lines: {case:?}") };
        let given = run(&mut connection, n, query).await;
        if given != *expected {
            misses.push(format!("{query}\n  expected {expected}\n  given    {given}"));
        }
    }
    assert!(120 <= lines.len() / 2);
    assert!(misses.is_empty(), "{} misses:\n{}", misses.len(), misses.join("\n"));
}

#[expect(
    clippy::disallowed_methods,
    reason = "the text is the compiler's own; what it is made of is the test's"
)]
async fn run(connection: &mut PgConnection, n: usize, query: &str) -> String {
    let variables = VALUES.map(|(name, ty, _)| Variable::new(name, ty));
    let query = match translate(query, &variables) {
        Ok(query) => query,
        Err(refusal) => return format!("! {}", refusal.rule),
    };
    let value = |name: &String| {
        let (_, _, value) = VALUES.iter().find(|(known, _, _)| known == name).expect("it is in the list");
        format!("'{value}'")
    };
    let values: Vec<String> = query.parameters().iter().map(value).collect();
    let values = if values.is_empty() { String::new() } else { format!("({})", values.join(", ")) };
    let script = format!("prepare case_{n} as {}; execute case_{n}{values}", query.sql().as_str());
    match connection.fetch_one(raw_sql(AssertSqlSafe(script))).await {
        Ok(row) => match row.get_unchecked::<Option<String>, _>("data") {
            Some(json) => format!("= {json}"),
            None => "= NULL".to_owned(),
        },
        Err(error) => {
            let code = error.as_database_error().and_then(|it| it.code()).map(|code| code.into_owned());
            format!("~ {}", code.unwrap_or_else(|| error.to_string()))
        }
    }
}
