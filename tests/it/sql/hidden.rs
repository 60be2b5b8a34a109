//! What a view or row-level security hides is told by no error and no estimate.

use rowgate_tests::client::Client;
use rowgate_tests::wait::until;
use serde_json::{Value, json};

use super::fixture::Lab;

/// Conditions that raise where `word` is what stands for `$word`.
const PROBES: [&str; 14] = [
    "select s.id from shown s where 1 / (case when word = '$word' then 0 else 1 end) = 1",
    "select s.id from shown s where (case when word = '$word' then 'x' else '1' end)::int = 1",
    "select s.id from shown s where substring(word, 1, case when word = '$word' then -1 else 1 end) <> ''",
    "select x.id from (select id, 1 / (case when word = '$word' then 0 else 1 end) as a from shown) x where a = 1",
    "with x as (select id, 1 / (case when word = '$word' then 0 else 1 end) as a from shown) select id from x where a = 1",
    "select s.id from shown s join kinds k on k.id = 1 / (case when word = '$word' then 0 else 1 end)",
    "select s.id from shown s where (case when word = '$word' then 1e400 else 1 end) < float8 '2'",
    "select s.id from shown s where coalesce(case when word = '$word' then 1e400 else null end, float8 '1') < 2",
    "select s.id from shown s where word <> '$word' or now()::text::int = 1",
    "select s.id from shown s where word <> '$word' or s.json_build_object is null",
    "select s.id from shown s where exists (select 1 from kinds k limit 1 / (case when s.word = '$word' then 0 else 1 end))",
    "select s.id from shown s where exists (select 1 from kinds k having count(k.id) filter (where 1 / (case when s.word = '$word' then 0 else 1 end) = 1) > 0)",
    "select s.id from shown s where not exists (select 1 from (values ('1e308'::float8), ('1e308'::float8)) x (f) where s.word = '$word' having sum(x.f) > 1)",
    "select s.id from shown s cross join lateral generate_series(1, 1 / (case when word = '$word' then 0 else 1 end)) g",
];

/// Seen to fail where nothing stands between a view and the conditions around it.
#[tokio::test]
async fn no_error_tells_of_a_row_that_a_view_hides() {
    let lab = Lab::with_view().await;
    for probe in PROBES {
        let (status, code, message) = lab.refused("north", &probe.replace("$word", "one"), json!({})).await;
        assert_eq!((status, code.as_str()), (400, "InvalidValue"), "{probe} raises nothing: {message}");
        for word in ["hidden_three", "absent"] {
            let rows = lab.rows("north", &probe.replace("$word", word)).await;
            assert_eq!(rows.as_array().map(Vec::len), Some(2), "{probe}: {word}");
        }
    }
}

/// Seen to fail where what a view works out is taken for a column of a table.
#[tokio::test]
async fn no_column_that_a_view_works_out_tells_of_a_row_that_it_hides() {
    let lab = Lab::with_view().await;
    for view in ["shown", "above"] {
        for word in ["hidden_three", "absent"] {
            for query in [
                format!("select id from {view} where word = '{word}' and rate > 5"),
                format!("select id from {view} where word = '{word}' and rate is not null"),
                format!(
                    "select {view}.rate, count(*) as n from {view} where word = '{word}' group by {view}.rate"
                ),
                format!("select 1 as n from {view} where word = '{word}' having count(distinct rate) > 0"),
            ] {
                assert_eq!(lab.rows("north", &query).await, json!([]), "{query}");
            }
            for rest in [
                format!("$filter=word eq '{word}' and rate gt 5"),
                format!("$filter=word eq '{word}' and rate ne null"),
                format!("$filter=word eq '{word}'&$orderby=rate&$first=1"),
            ] {
                let path = format!("/auth/lab/api/{view}?{}", rest.replace(' ', "%20"));
                let reply = lab.get("north", &path).await;
                assert_eq!((reply.status.as_u16(), &reply.json()["value"]), (200, &json!([])), "{path}");
            }
        }
        let all = lab.get("north", &format!("/auth/lab/api/{view}?$orderby=rate&$first=1")).await.json();
        assert_eq!(all["value"][0]["id"], 2, "{all}");
        let next = all["nextLink"].as_str().unwrap_or_else(|| panic!("{all}"));
        let path = next.split_once("/auth/").map(|(_, path)| format!("/auth/{path}")).expect("a link");
        let rest = lab.get("north", &path).await.json();
        assert_eq!(rest["value"][0]["id"], 1, "{rest}");
    }
}

/// Seen to fail where a view stands beside an outer join as it is.
#[tokio::test]
async fn no_outer_join_tells_of_a_row_that_a_view_hides() {
    let lab = Lab::with_view().await;
    for word in ["hidden_three", "absent"] {
        for share in ["s.share", "s", "(to_json(s) -> 'share')"] {
            let query = format!("select {share} as share from bins b left join shown s on s.word = '{word}'");
            assert_eq!(lab.rows("north", &query).await, json!([{"share": null}, {"share": null}]), "{query}");
        }
    }
}

/// PostgreSQL looks for the row with the greatest value that is not NULL, and tries that before what tells which rows a view shows. Seen
/// to fail where `max` and `min` are taken for harmless.
#[tokio::test]
async fn no_greatest_value_tells_of_a_row_that_a_view_hides() {
    let lab = Lab::with_view().await;
    for word in ["hidden_three", "absent"] {
        for (what, expected) in [
            ("max(rate)", json!(20_000)),
            ("min(rate) filter (where true)", json!(-100)),
            ("max(100 / n)", json!(100)),
            ("min(distinct 100 / n) + 1", json!(-99)),
        ] {
            let query = format!("select {what} as m from ranks where word <> '{word}'");
            assert_eq!(lab.rows("north", &query).await, json!([{ "m": expected }]), "{query}");
        }
        let having = format!("select 1 as m from ranks where word <> '{word}' having min(-100 / n) < 0");
        assert_eq!(lab.rows("north", &having).await, json!([{"m": 1}]), "{having}");
        let key = lab.world.key("north");
        let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
        let body = json!({"filter": format!("word ne '{word}'"), "aggregations": [{"function": "max", "field": "rate", "as": "m"}]});
        let url = format!("{}/api/ddl/aggregates/ranks", lab.world.url());
        let reply = Client::new().send("POST", &url, &headers, &body.to_string()).await;
        assert_eq!(
            (reply.status.as_u16(), &reply.json()["value"]),
            (200, &json!([{"m": 20_000}])),
            "{reply:?}"
        );
    }
}

/// PostgreSQL reads `a.f` as `f(a)` where a has no such column. Seen to fail where another table of the statement has one.
#[tokio::test]
async fn no_name_of_a_column_calls_a_function_of_a_row_that_a_view_hides() {
    let lab = Lab::with_view().await;
    for word in ["hidden_three", "absent"] {
        let query = format!(
            "select s.id from shown s join bins b on b.id > 0 where s.word = '{word}' and s.to_json is null"
        );
        assert_eq!(lab.rows("north", &query).await, json!([]), "{query}");
        let query = format!(
            "select s.to_json as x from bins o left join shown s on s.word = '{word}' left join bins b on b.id = o.id where o.id = 1"
        );
        assert_eq!(lab.rows("north", &query).await, json!([{"x": null}]), "{query}");
    }
}

/// Seen to fail where a database asks for plans of any value, which work out none before they read rows.
#[tokio::test]
async fn no_value_of_a_parameter_tells_of_a_row_that_a_view_hides() {
    let lab = Lab::with_view().await;
    lab.sql("alter database lab set plan_cache_mode = force_generic_plan").await;
    for word in ["hidden_three", "absent"] {
        let query = format!("select id from shown where word = '{word}' and id < @p::numeric(3, 1)");
        let (status, code, _) = lab.refused("north", &query, json!({"p": 1000})).await;
        assert_eq!((status, code.as_str()), (400, "InvalidValue"), "{query}");
    }
}

/// Seen to fail where what a relationship compares is taken for columns of tables.
#[tokio::test]
async fn no_relationship_over_what_a_view_works_out_tells_of_a_row_that_it_hides() {
    let lab = Lab::with_view().await;
    for word in ["hidden_three", "absent"] {
        for (request, expected) in [
            (format!("shown?$filter=(word eq '{word}' and binned/id gt 0) or id eq 77"), json!([])),
            (format!("shown?$select=id&$filter=word eq '{word}'&$expand=binned"), json!([])),
            (
                "bins?$select=id&$filter=id eq 3&$expand=one($select=share)".to_owned(),
                json!([{"id": 3, "one": null}]),
            ),
            (
                "bins?$select=id&$expand=one($select=share)&$orderby=id".to_owned(),
                json!([{"id": 1, "one": {"share": -50}}, {"id": 3, "one": null}]),
            ),
            (format!("bins?$filter=id lt 3 and rated/any(r: r/word eq '{word}')"), json!([])),
            (
                format!("bins?$select=id&$filter=id lt 3&$expand=rated($filter=word eq '{word}')"),
                json!([{"id": 1, "rated": []}]),
            ),
            (
                format!(
                    "bins?$select=id&$filter=id lt 3&$expand=rated($filter=word eq '{word}' and rate gt 1;$orderby=rate)"
                ),
                json!([{"id": 1, "rated": []}]),
            ),
            (
                format!(
                    "bins?$select=id&$filter=id lt 3 and not rated/any(r: r/word eq '{word}' and r/rate gt 1)"
                ),
                json!([{"id": 1}]),
            ),
        ] {
            let path = format!("/auth/lab/api/{}", request.replace(' ', "%20"));
            let reply = lab.get("north", &path).await;
            assert_eq!(
                (reply.status.as_u16(), &reply.json()["value"]),
                (200, &expected),
                "{path}: {reply:?}"
            );
        }
    }
    let found = lab
        .get("north", "/auth/lab/api/shown?$select=id&$filter=binned/id%20eq%20null&$orderby=id")
        .await
        .json();
    assert_eq!(found["value"], json!([{"id": 1}, {"id": 2}]), "{found}");
}

/// Seen to fail where an array compares as its elements do, and these are a domain over a type without equality.
#[tokio::test]
async fn arrays_of_what_has_no_equality_are_not_compared() {
    let lab = Lab::with_view().await;
    for word in ["hidden_three", "absent"] {
        let filter =
            format!("word eq '{word}' and docs eq '{{\"{{}}\"}}'").replace(' ', "%20").replace('"', "%22");
        let reply = lab.get("north", &format!("/auth/lab/api/shown?$filter={filter}")).await;
        assert_eq!(reply.status, 400, "{reply:?}");
    }
}

/// Seen to fail where only REST leaves them out.
#[tokio::test]
async fn rows_that_are_flagged_as_deleted_are_in_no_query() {
    let lab = Lab::with_view().await;
    for word in ["hidden_three", "absent"] {
        let query = format!("select id from flagged where word = '{word}'");
        assert_eq!(lab.rows("north", &query).await, json!([]), "{query}");
        let path = format!("/auth/lab/api/flagged?$filter=word%20eq%20'{word}'");
        let reply = lab.get("north", &path).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["value"]), (200, &json!([])), "{path}: {reply:?}");
    }
    assert_eq!(lab.rows("north", "select id from flagged").await, json!([{"id": 1}]));
    let shown = lab.get("north", "/auth/lab/api/flagged?$select=id").await.json();
    assert_eq!(shown["value"], json!([{"id": 1}]), "{shown}");
    let counted = "select b.id, (select count(*) from lab.bins) as n from bins b group by b.id order by b.id";
    assert_eq!(lab.rows("north", counted).await, json!([{"id": 1, "n": 2}, {"id": 3, "n": 2}]));
}

/// Seen to fail where the views of the catalog stand as they are.
#[tokio::test]
async fn no_error_tells_of_a_table_that_a_key_may_not_read() {
    let lab = Lab::open().await;
    let probes = [
        "select table_name from information_schema.tables where 1 / (case when table_name = '$table' then 0 else 1 end) = 0",
        "select column_name from information_schema.columns where 1 / (case when table_name = '$table' then 0 else 1 end) = 0",
        "select column_name from information_schema.key_column_usage where 1 / (case when table_name = '$table' then 0 else 1 end) = 0",
    ];
    for probe in probes {
        for table in ["kinds", "absent"] {
            assert_eq!(
                lab.rows("south", &probe.replace("$table", table)).await,
                json!([]),
                "{probe}: {table}"
            );
        }
    }
}

/// Seen to fail where the rows are divided by what PostgreSQL expects of a table with policies, and where a filter may lead to one.
#[tokio::test]
async fn an_export_tells_no_progress_over_hidden_rows() {
    let lab = Lab::with_many().await;
    let (base, key) = (format!("{}/api/ddl/exports", lab.world.url()), lab.world.key("plain"));
    let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
    let client = Client::new();
    let of = |table| format!("select t.id, g from {table} t cross join generate_series(1, 3000000) g");
    for (what, tells) in [
        (json!({"query": of("kinds")}), true),
        (json!({"query": of("notes")}), false),
        (json!({"entity": "many"}), true),
        (json!({"entity": "many", "filter": "not note/any(n: n/word eq 'hidden_column')"}), false),
    ] {
        let mut body = what.clone();
        body["format"] = json!("csv");
        // it takes longer so
        body["compression"] = json!("gzip");
        let made: Value = client.send("POST", &base, &headers, &body.to_string()).await.json();
        let url = format!("{base}/{}", made["id"].as_str().unwrap_or_else(|| panic!("{made}")));
        let job: Value = until("some rows", async || {
            let job: Value = client.get(&url, &headers).await.json();
            (job["rows"].as_u64().unwrap_or(0) != 0).then_some(job)
        })
        .await;
        assert_eq!(job["progress"].is_number(), tells, "{what}: {job}");
        assert_eq!(client.send("DELETE", &url, &headers, "").await.status, 204);
    }
}

/// Seen to fail where PostgreSQL's word of a right is another refusal than its word that there is no such name.
#[tokio::test]
async fn a_value_that_names_a_schema_does_not_tell_whether_it_is_there() {
    let lab = Lab::open().await;
    let query = "select to_tsvector(@config, 'x') as a";
    let refused = async |config| lab.refused("north", query, json!({"config": config})).await;
    assert_eq!(refused("pg_toast.x").await, refused("nope.x").await);
}
