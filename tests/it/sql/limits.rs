//! How long, how large and how many: what a query may take, and that nothing is left of one that took more.

use std::time::{Duration, Instant};

use rowgate_tests::wait::until;
use serde_json::json;

use super::fixture::{Lab, refusal};

/// Statements of keys that run.
const RUNNING: &str = "select count(*) as n from pg_stat_activity where datname = 'lab' and state = 'active' \
                       and (usename like 'key\\_%' or usename like '%\\_sql')";

/// What has no end, or takes what a server has: CPU, memory, temporary files, recursion.
const BOMBS: [&str; 16] = [
    "select count(*) as a from generate_series(1, 1000000000000)",
    "select count(*) as a from lab.notes a, lab.notes b, lab.notes c, lab.notes d, lab.notes e, lab.notes f",
    "with recursive r (n) as (select 1 union all select n + 1 from r) select count(*) as a from r",
    "with recursive r (n) as (select 'x' union all select n || n from r) select max(n) as a from r",
    "with recursive r (n) as (select 1 union select n + 1 from r) select n from r order by n desc",
    "select array_agg(g) as a from generate_series(1, 2000000000) g",
    "select string_agg(repeat('x', 1000), '') as a from generate_series(1, 100000000)",
    "select json_agg(repeat('x', 1000)) as a from generate_series(1, 100000000)",
    "select g from generate_series(1, 2000000000) g order by md5(g::text)",
    "select count(*) as a from (select distinct g, repeat('x', 1000) from generate_series(1, 2000000000) g) x",
    "select count(*) as a from generate_series(1, 100000000) a join generate_series(1, 100000000) b on a % 7 = b % 7",
    "select count(*) as a from generate_series(1, 2000000000) g where lpad(g::text, 100, 'a') ~ '(a*)*b'",
    "select count(*) as a from generate_series(1, 2000000000) g where lpad(g::text, 1000, 'a') like '%a%a%a%a%a%a%a%a%b'",
    "select count(*) as a from generate_series(1, 2000000000) g where length(repeat(repeat('a', 1000), 1000)) > 0",
    "select sum(2::numeric ^ (g % 100000)) as a from generate_series(1, 2000000000) g",
    "select percentile_cont(0.5) within group (order by g) as a from generate_series(1, 2000000000) g",
];

#[tokio::test]
async fn rows_beyond_10000_are_said_to_be_left_out() {
    let lab = Lab::open().await;
    for (n, given, truncated) in
        [(9_999, 9_999, false), (10_000, 10_000, false), (10_001, 10_000, true), (50_000, 10_000, true)]
    {
        let query = format!("select g, repeat('x', 50) as x from generate_series(1, {n}) g");
        let told = lab.told("north", &query, json!({})).await;
        assert_eq!(told["value"].as_array().map(Vec::len), Some(given), "{n}");
        assert_eq!(told["truncated"], truncated, "{n}");
        assert_eq!(told["value"][given - 1]["g"], given, "{n}");
    }
}

#[tokio::test]
async fn an_answer_ends_at_32_mib_and_one_row_may_not_be_longer() {
    let lab = Lab::open().await;
    let mib = "(select string_agg(repeat('x', 1000), '') from generate_series(1, 1000 + g * 0))";
    let told =
        lab.told("north", &format!("select {mib} as a from generate_series(1, 60) g"), json!({})).await;
    let n_rows = told["value"].as_array().map_or(0, Vec::len);
    assert!((25..34).contains(&n_rows), "{n_rows} rows");
    assert_eq!(told["truncated"], true);
    let query = "select string_agg(repeat('x', 1000), '') as a from generate_series(1, 40000)";
    let (status, code, message) = lab.refused("north", query, json!({})).await;
    assert_eq!((status, code.as_str()), (413, "TooLarge"), "{message}");
}

/// A number of ten bytes has 131,072 digits: what is sent for it was 1.5 GB, of one row.
#[tokio::test]
async fn a_row_that_grows_when_it_is_written_ends_at_its_limit() {
    let lab = Lab::open().await;
    for query in [
        "select array_agg(1e131071) as a from generate_series(1, 5000) g",
        "select row_to_json(x) as j, x.a as a from (select array_agg(1e131071) as a from generate_series(1, 500) g) x",
        "select replace(repeat(repeat('x', 1000), 1000), 'x', repeat(chr(1), 20)) as a",
    ] {
        let (status, code, message) = lab.refused("north", query, json!({})).await;
        assert_eq!((status, code.as_str()), (413, "TooLarge"), "{query}: {message}");
    }
    let few =
        lab.told("north", "select array_agg(1e131071) as a from generate_series(1, 9) g", json!({})).await;
    assert_eq!(few["value"][0]["a"].as_array().map(Vec::len), Some(9));
}

/// Seen to fail where the place of a query is free again once PostgreSQL has given the answer.
#[tokio::test]
async fn an_answer_that_is_not_read_keeps_the_place_of_its_query() {
    let lab = Lab::open().await;
    let long = "select string_agg(repeat('x', 1000), '') as a from generate_series(1, 25000)";
    let (url, key) = (format!("{}/api/ddl/sql", lab.world.url()), lab.world.key("north"));
    let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
    let body = json!({"query": long}).to_string();
    let client = rowgate_tests::client::Client::new();
    let mut unread = Vec::new();
    for _ in 0..3 {
        let answer = client.open("POST", &url, &headers, &body).await;
        assert_eq!(answer.status(), 200);
        unread.push(answer);
    }
    let (status, code, message) = lab.refused("north", "select 1 as a", json!({})).await;
    assert_eq!((status, code.as_str()), (503, "Unavailable"), "{message}");
    assert_eq!(lab.rows("south", "select 1 as a").await, json!([{"a": 1}]));
    drop(unread);
    until("a place", async || {
        (lab.ask("north", "select 1 as a", json!({})).await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_has_no_end_is_ended_and_nothing_of_it_is_left() {
    let lab = Lab::with_timeout("500ms").await;
    for key in ["north", "plain"] {
        for query in BOMBS {
            let (status, code, message) = lab.refused(key, query, json!({})).await;
            let is_ended = [(504, "StatementTimeout"), (413, "TooLarge")].contains(&(status, code.as_str()));
            assert!(is_ended, "{key}: {query}: {status} {code} {message}");
            until("the end of the statement", async || (lab.seen(RUNNING).await[0]["n"] == 0).then_some(()))
                .await;
        }
        assert_eq!(lab.rows(key, "select 1 as a").await, json!([{"a": 1}]));
    }
    let files = lab.seen("select count(*) as n from pg_ls_tmpdir()").await;
    assert_eq!(files[0]["n"], 0);
}

#[tokio::test]
async fn a_query_ends_with_the_client_that_asked_for_it() {
    let lab = Lab::open().await;
    let (url, key) = (format!("{}/api/ddl/sql", lab.world.url()), lab.world.key("north"));
    for query in [
        "select count(*) as n from generate_series(1, 1000000000000)",
        // rows come all the time, and the client takes the first only
        "select repeat('x', 1000) as x from generate_series(1, 9000) g, generate_series(1, 1 + g * 0) h where (select count(*) from generate_series(1, 10000 + g)) > 0",
    ] {
        let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
        let body = json!({"query": query}).to_string();
        let client = rowgate_tests::client::Client::new();
        let asking = client.try_open("POST", &url, &headers, &body);
        let ran = tokio::time::timeout(Duration::from_millis(700), asking).await;
        drop(ran);
        drop(client);
        until("the end of the statement", async || (lab.seen(RUNNING).await[0]["n"] == 0).then_some(()))
            .await;
    }
    assert_eq!(lab.rows("north", "select 1 as a").await, json!([{"a": 1}]));
}

/// One key may not take all places of its tenant, and one that waits too long is told so.
#[tokio::test]
async fn a_key_with_too_many_queries_waits_and_leaves_a_place_to_others() {
    let lab = Lab::with_timeout("4s").await;
    let slow = "select count(*) as n from generate_series(1, 1000000000000)";
    let asked = async {
        let all = (0..40).map(|_| lab.refused("north", slow, json!({})));
        futures_util::future::join_all(all).await
    };
    let other = async {
        until("queries of the other key", async || (lab.seen(RUNNING).await[0]["n"] != 0).then_some(()))
            .await;
        lab.rows("plain", "select 1 as a").await
    };
    let (refused, other) = tokio::join!(asked, other);
    assert_eq!(other, json!([{"a": 1}]));
    let codes: std::collections::BTreeSet<&str> = refused.iter().map(|(_, code, _)| code.as_str()).collect();
    assert!(codes.contains("StatementTimeout"), "{refused:?}");
    assert!(codes.is_subset(&["StatementTimeout", "Unavailable", "RateLimited"].into()), "{refused:?}");
}

/// One key would have the replica do little else but refuse. Seen to fail where statements do not wait for those that were refused.
#[tokio::test]
async fn statements_wait_where_more_than_a_hundred_a_second_are_refused() {
    let lab = Lab::open().await;
    let began = Instant::now();
    let ask = async || {
        for _ in 0..50 {
            let (status, code, message) = lab.refused("north", "select pg_sleep(1)", json!({})).await;
            assert_eq!((status, code.as_str()), (400, "InvalidSql"), "{message}");
        }
    };
    futures_util::future::join_all((0..8).map(|_| ask())).await;
    let took = began.elapsed();
    assert!(Duration::from_millis(2_900) <= took, "400 refusals took {took:?}");

    // one counts for many by its length, so that more come than the next second is for
    let long = format!("select {}pg_sleep(1) as a", "1, ".repeat(20_000));
    let at_once = (0..40).map(|_| lab.ask("north", &long, json!({})));
    let mut replies = futures_util::future::join_all(at_once).await;
    // where all of them came before the first was refused, the next one is the first that waits
    replies.push(lab.ask("north", "select 1 as a", json!({})).await);
    let is_too_early = |reply: &rowgate_tests::client::Reply| {
        reply.status.as_u16() == 429 && reply.header("retry-after").is_some()
    };
    assert!(replies.iter().any(is_too_early), "{:?}", replies.iter().map(|it| it.status).collect::<Vec<_>>());
    assert_eq!(lab.rows("plain", "select 1 as a").await, json!([{"a": 1}]));
}

/// Seen to fail where it says that the database is unavailable.
#[tokio::test]
async fn temporary_files_end_at_the_limit_of_the_server() {
    let lab = Lab::open().await;
    lab.sql("insert into lab.kinds (id, t) select g, md5(g::text) from generate_series(1000, 60000) g").await;
    for setting in ["temp_file_limit = '1MB'", "work_mem = '64kB'"] {
        lab.sql(&format!("alter system set {setting}")).await;
    }
    lab.sql("select pg_reload_conf()").await;
    let limit = "select 1 as n from pg_settings where name = 'temp_file_limit' and setting = '1024'";
    until("the limit", async || (!lab.seen(limit).await.is_empty()).then_some(())).await;
    let sorted = "select g from generate_series(1, 2000000000) g order by md5(g::text)";
    for key in ["north", "plain"] {
        let (status, code, message) = lab.refused(key, sorted, json!({})).await;
        assert_eq!((status, code.as_str()), (413, "TooLarge"), "{message}");
        assert!(message.contains("temporary files"), "{message}");
    }
    let url = format!("{}/api/ddl/aggregates/kinds", lab.world.url());
    let key = lab.world.key("plain");
    let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
    let body =
        json!({"groupBy": ["t"], "aggregations": [{"function": "count", "as": "n"}], "first": 5}).to_string();
    let reply = rowgate_tests::client::Client::new().send("POST", &url, &headers, &body).await;
    let (status, code, message) = refusal(&reply);
    assert_eq!((status, code.as_str()), (413, "TooLarge"), "{message}");
    assert!(message.contains("temporary files"), "{message}");
    assert_eq!(lab.get("plain", "/auth/lab/api/kinds/id/1").await.status, 200, "the tenant is served");
}
