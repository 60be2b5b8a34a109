//! Queries of dead keys, values and rows, and what is said of a query before it runs.

use std::time::Duration;

use rowgate_pg::wire::{Query, QueryFailure, Values};
use rowgate_sql::text::Bind;
use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::{DEADLINE, until};
use serde_json::json;

use super::fixture::{Desk, json, word};

#[tokio::test]
async fn rows_come_with_their_types_and_bounds_and_one_value_as_it_is() {
    let desk = Desk::open().await;
    assert_eq!(
        desk.rows("a", "select * from app.odd").await,
        // as PostgreSQL prints it
        json!([{"b": true, "n": serde_json::Number::from_string_unchecked("1.50".to_owned()), "t": "x\"y", "j": {"k": [1]},
            "at": "2024-01-31T10:00:00.5Z"}])
    );
    let bind = |oid, text: &str| Bind::text(oid, text);
    let text = "select $1 + 1 as n, upper($2) as t from app.notes where note = $3 limit 1";
    let binds = vec![bind(23, "41"), bind(25, "zoë"), bind(25, "hidden_a")];
    let outcome = desk.run_with("a", text, binds, DEADLINE).await.expect("an answer");
    assert_eq!(json(&outcome), json!([{"n": 42, "t": "ZOË"}]));
    assert_eq!(outcome.columns.iter().map(|column| &*column.name).collect::<Vec<_>>(), ["n", "t"]);

    let many = "select g from generate_series(1, 5000) g";
    let outcome = desk.run("a", many).await.expect("an answer");
    assert_eq!((outcome.n_rows, outcome.more), (1_000, true));
    let whole = "select g from generate_series(1, 1000) g";
    let outcome = desk.run("a", whole).await.expect("an answer");
    assert_eq!((outcome.n_rows, outcome.more), (1_000, false));
    let wide = "select repeat('x', 1000) as t from generate_series(1, 1000000)";
    let values = Values::Rows { max: 1_000_000 };
    let outcome = desk.ask("a", Query { values, max_bytes: 100_000, ..desk.query("a", wide) }).await;
    let outcome = outcome.expect("an answer");
    assert!(outcome.more && (50..=100).contains(&outcome.n_rows), "{}", outcome.n_rows);

    let one = |text: &'static str| desk.ask("a", Query { values: Values::One, ..desk.query("a", text) });
    let value = one("select json_build_object('b', 1, 'a', null)").await.expect("an answer").json;
    assert_eq!(value, br#"{"b" : 1, "a" : null}"#);
    assert_eq!(one("select '[1]'::jsonb").await.expect("an answer").json, b"[1]");
    for nothing in ["select '1'::json where false", "select null::json"] {
        assert_eq!(one(nothing).await.expect("an answer").json, b"", "{nothing}");
    }
    for (wrong, expected) in [
        ("select 1", "Result"),
        ("select '1'::json, '2'::json", "Result"),
        ("select '1'::json from generate_series(1, 2)", "Result"),
        ("select to_json(repeat('x', 2000000))", "TooLong"),
        ("select to_json(1 / (select count(*) from app.notes where false))", "Value"),
    ] {
        assert_eq!(word(&one(wrong).await), expected, "{wrong}");
    }
}

/// What exists and is hidden must look like what does not exist.
#[tokio::test]
async fn preparing_says_where_the_grammar_fails_and_nothing_of_names() {
    let desk = Desk::open().await;
    let prepare = |text: &str, binds: Vec<Bind>| {
        desk.queries.prepare(desk.check("a"), Query { binds, ..desk.query("a", text) })
    };
    let columns = prepare("select id, note from app.notes where id = $1", vec![Bind::text(23, "x")]).await;
    assert_eq!(columns.expect("no value is read").len(), 2);
    for (text, expected) in [
        ("select from from app.notes", "Syntax Some(13)"),
        ("select 'ö', from from app.notes", "Syntax Some(13)"),
        ("select 'open", "Syntax Some(8)"),
        ("select * from app.secrets", "Unfit None"),
        ("select * from nowhere", "Unfit None"),
        ("select word from app.secrets", "Unfit None"),
        ("select nothing from app.secrets", "Unfit None"),
        ("select 'x'::integer", "Unfit None"),
        ("insert into app.open values (1)", "Result None"),
    ] {
        let shown = match prepare(text, Vec::new()).await {
            Err(QueryFailure::Refused(refused)) => format!("{:?} {:?}", refused.why, refused.position),
            other => format!("{other:?}"),
        };
        assert_eq!(shown, expected, "{text}");
    }
}

#[tokio::test]
async fn a_dead_key_runs_nothing_more() {
    let mut desk = Desk::open().await;
    for key in ["a", "u"] {
        // a session of it waits
        desk.rows(key, "select 1 as n").await;
        let id = crate::postgres::wire::fixture::id(key);
        execute(
            &mut desk.tenant.superuser,
            &format!("update dl.keys set revoked_at = now() where id = '{id}'"),
        )
        .await;
        assert_eq!(word(&desk.run(key, "select 1 as n").await), "DeadKey", "{key}");
        assert_eq!(
            word(
                &desk
                    .queries
                    .prepare(desk.check(key), desk.query(key, "select 1 as n"))
                    .await
                    .map(|_| unreachable!("it is dead"))
            ),
            "DeadKey",
            "{key}"
        );
    }
    assert_eq!(desk.rows("b", "select 1 as n").await, json!([{"n": 1}]));
}

/// Another replica ends them.
#[tokio::test]
async fn a_query_ends_when_its_key_dies() {
    let mut desk = Desk::open().await;
    let (elsewhere, _) = Desk::replica(&desk.server, &desk.tenant);
    for (key, text) in [("a", "select app.stubborn()"), ("u", "select pg_sleep(600)")] {
        let (queries, check, query) = (desk.queries.clone(), desk.check(key), desk.query(key, text));
        let query = Query { limit: Duration::from_secs(3_600), ..query };
        let running = tokio::spawn(async move { queries.run(check, query).await });
        let login = if key == "u" { "wq_sql" } else { "wq_a" };
        let active = format!(
            "select count(*) as n from pg_stat_activity where state = 'active' and usename = '{login}' and query like '%app.stubborn%' or query like 'select pg_sleep(600)'"
        );
        until("the query", async || (desk.seen(&active).await[0]["n"] == 1).then_some(())).await;
        let id = crate::postgres::wire::fixture::id(key);
        execute(
            &mut desk.tenant.superuser,
            &format!("update dl.keys set revoked_at = now() where id = '{id}'"),
        )
        .await;
        until("the end of its session", async || {
            elsewhere.end_dead().await.expect("the database answers");
            running.is_finished().then_some(())
        })
        .await;
        assert_eq!(word(&running.await.expect("no panic")), "Ended", "{key}");
    }
}
