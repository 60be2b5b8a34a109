//! Every function over every type that has it, as PostgreSQL works it out, and groups in pages.

use std::fmt::Write as _;

use rowgate_tests::servers::postgres::{attempt, major};
use serde_json::{Value, json};

use super::fixture::Fixture;

const LIMITS: &[&str] = &["min", "max"];
const NUMBERS: &[&str] = &["sum", "avg", "min", "max"];
const SUMS: &[&str] = &["sum", "min", "max"];
const NONE: &[&str] = &[];

/// Declared type, two values, the functions that it has beside `count`, and whether equal values are found.
const TYPES: &[(&str, [&str; 2], &[&str], bool)] = &[
    ("smallint", ["7", "-32768"], NUMBERS, true),
    ("integer", ["2147483647", "-1"], NUMBERS, true),
    ("bigint", ["9223372036854775807", "9223372036854775806"], NUMBERS, true),
    ("numeric", ["1.50", "'NaN'"], NUMBERS, true),
    ("numeric(12,4)", ["0.0001", "99999999.9999"], NUMBERS, true),
    ("real", ["0.1", "1e10"], NUMBERS, true),
    ("double precision", ["0.1", "'-Infinity'"], NUMBERS, true),
    ("money", ["'12.34'", "'-5'"], SUMS, true),
    ("v.positive", ["3", "4"], NUMBERS, true),
    ("interval", ["'1 day 2 hours'", "'3 months'"], NUMBERS, true),
    ("text", ["'b'", "'a\u{e4}\"'"], LIMITS, true),
    ("varchar(5)", ["'b'", "'a'"], LIMITS, true),
    ("char(4)", ["'b'", "'a'"], LIMITS, true),
    ("name", ["'b'", "'a'"], LIMITS, true),
    ("date", ["'2024-02-29'", "'infinity'"], LIMITS, true),
    ("time", ["'10:00'", "'23:59:59.999999'"], NUMBERS, true),
    ("bytea", ["'\\x01'", "'\\x02'"], NONE, true),
    ("timetz", ["'10:00+02'", "'09:00+01'"], LIMITS, true),
    ("timestamp", ["'2024-02-29 10:00'", "'1999-01-01 00:00'"], LIMITS, true),
    ("timestamptz", ["'2024-02-29 10:00Z'", "'1999-01-01 00:00Z'"], LIMITS, true),
    ("inet", ["'192.0.2.1'", "'2001:db8::1'"], LIMITS, true),
    ("cidr", ["'192.0.2.0/24'", "'10.0.0.0/8'"], LIMITS, true),
    ("oid", ["7", "4294967295"], LIMITS, true),
    ("xid8", ["'7'", "'8'"], LIMITS, true),
    ("pg_lsn", ["'16/B374D848'", "'0/0'"], LIMITS, true),
    ("integer[]", ["'{1,2}'", "'{1,NULL}'"], LIMITS, true),
    ("text[]", ["'{a}'", "'{}'"], LIMITS, true),
    ("v.mood", ["'sad'", "'glad'"], LIMITS, true),
    ("boolean", ["true", "false"], NONE, true),
    (
        "uuid",
        ["'3f2504e0-4f89-11d3-9a0c-0305e82c3301'", "'00000000-0000-0000-0000-000000000000'"],
        NONE,
        true,
    ),
    ("jsonb", ["'{}'", "'[1]'"], NONE, true),
    ("int4range", ["'[1,2)'", "'empty'"], NONE, true),
    ("json", ["'{}'", "'[1]'"], NONE, false),
    ("point", ["'(1,2)'", "'(1,2)'"], NONE, false),
];

/// What PostgreSQL 18 has besides.
fn is_later(function: &str, ty: &str) -> bool {
    18 <= major() && LIMITS.contains(&function) && ty == "bytea"
}

/// Each function of a type, whether of distinct values, and its name in answers.
fn calls(n: usize, functions: &[&str], has_equality: bool) -> Vec<(String, bool, String)> {
    let call = |function: &str, is_distinct: bool| {
        (function.to_owned(), is_distinct, format!("{function}{}_{n}", if is_distinct { "_d" } else { "" }))
    };
    let all = functions.iter().chain(&["count"]).map(|function| call(function, false));
    let distinct =
        functions.iter().chain(&["count"]).filter(|_| has_equality).map(|function| call(function, true));
    all.chain(distinct).collect()
}

/// Groups 1, 2 and 3: both values and one twice, one value, NULL alone. `wanted` is what PostgreSQL works out.
fn script() -> String {
    let (mut columns, mut rows, mut wanted) = (String::new(), vec![String::new(); 6], String::new());
    for (n, (ty, [a, b], functions, has_equality)) in TYPES.iter().enumerate() {
        write!(columns, ", c{n} {ty}").expect("writing to a string");
        for (row, value) in rows.iter_mut().zip([a, b, a, b, "null", "null"]) {
            write!(row, ", {value}").expect("writing to a string");
        }
        for (function, is_distinct, name) in calls(n, functions, *has_equality) {
            let distinct = if is_distinct { "distinct " } else { "" };
            write!(wanted, ", {function}({distinct}c{n}) as {name}").expect("writing to a string");
        }
    }
    let rows: Vec<String> = rows
        .iter()
        .zip([1, 1, 1, 2, 2, 3])
        .enumerate()
        .map(|(id, (row, group))| format!("({id}, {group}{row})"))
        .collect();
    format!(
        "create schema v;\ncreate type v.mood as enum ('sad', 'glad');\ncreate domain v.positive as int check (value > 0);\n\
         create table v.base (id int primary key, g int{columns});\ninsert into v.base values {};\n\
         create table v.wanted as select g as id, count(*) as n{wanted} from v.base group by g;\n\
         alter table v.wanted add primary key (id);\n\
         create table v.pages (id int primary key, t text, n numeric, d float8, w int);\n\
         insert into v.pages select i, (array['a', 'B', 'b', '\u{e4}', null])[1 + i % 5], \
         (array[1.5, 'NaN', null, 2.5, 'Infinity'])[1 + i % 5]::numeric, \
         (array[0.1, 'NaN', '-0', null])[1 + i % 4]::float8, i % 7 from generate_series(1, 3000) i;\n",
        rows.join(", ")
    )
}

async fn groups(fixture: &Fixture, entity: &str, body: &Value) -> Value {
    let (status, text) = fixture.aggregate(entity, &body.to_string()).await;
    assert_eq!(status, 200, "{body}: {text}");
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test]
async fn every_function_gives_what_postgresql_gives_for_every_type() {
    let fixture = Fixture::new(&script(), &["base", "wanted", "pages"]).await;
    let (wanted, _) = fixture.page("wanted?$orderby=id").await;
    let wanted: Vec<Value> = serde_json::from_str(&format!("[{wanted}]")).expect("JSON");
    let mut conn = fixture.world.superuser("values").await;
    for (n, (ty, _, functions, has_equality)) in TYPES.iter().enumerate() {
        let calls = calls(n, functions, *has_equality);
        let aggregations: Vec<Value> = calls
            .iter()
            .map(|(function, is_distinct, name)| {
                json!({"function": function, "field": format!("c{n}"), "as": name, "distinct": is_distinct})
            })
            .collect();
        let body = json!({"groupBy": ["g"], "aggregations": aggregations, "orderby": "g"});
        let found = groups(&fixture, "base", &body).await;
        for (found, wanted) in found["value"].as_array().expect("groups").iter().zip(&wanted) {
            assert_eq!(found["g"], wanted["id"]);
            for (_, _, name) in &calls {
                assert_eq!(found[name], wanted[name], "{ty}: {name} of group {}", found["g"]);
            }
        }
        // and PostgreSQL has no function that is refused
        for function in NUMBERS.iter().filter(|function| !functions.contains(function)) {
            let body = json!({"aggregations": [{"function": function, "field": format!("c{n}"), "as": "x"}]});
            let (status, text) = fixture.aggregate("base", &body.to_string()).await;
            assert!(status == 400 && text.contains(&format!("has no {function}")), "{ty} {function}: {text}");
            let known = attempt(&mut conn, &format!("select {function}(c{n}) from v.base")).await;
            assert_eq!(known.is_ok(), is_later(function, ty), "{ty} {function}");
        }
        if !has_equality {
            let body = json!({"aggregations": [{"function": "count", "field": format!("c{n}"), "as": "x", "distinct": true}]});
            let (status, text) = fixture.aggregate("base", &body.to_string()).await;
            assert_eq!(status, 400, "{ty}: {text}");
        }
    }

    // pages: their union is the one-shot answer, wherever they end
    let mut n_pages = 0;
    for (by, orderby) in [
        (&["t"][..], ""),
        (&["t"], "total desc"),
        (&["t"], "n"),
        (&["n"], ""),
        (&["n", "t"], "t desc,top"),
        (&["d", "t"], "d"),
        (&["d", "t"], "total,d desc"),
        (&["w", "n"], "low desc"),
    ] {
        let aggregations = json!([{"function": "count", "as": "total"}, {"function": "max", "field": "n", "as": "top"},
            {"function": "min", "field": "t", "as": "low"}]);
        // `n` is a key or an aggregation
        let aggregations = match orderby {
            "n" => json!([{"function": "count", "as": "n"}]),
            _ => aggregations,
        };
        let mut body =
            json!({"groupBy": by, "aggregations": aggregations, "filter": "id le 1000", "first": -1});
        if !orderby.is_empty() {
            body["orderby"] = json!(orderby);
        }
        let whole = groups(&fixture, "pages", &body).await;
        assert_eq!(whole["after"], Value::Null);
        for first in [1, 2, 3, 7] {
            (body["first"], body["after"]) = (json!(first), Value::Null);
            let mut pages = Vec::new();
            loop {
                let page = groups(&fixture, "pages", &body).await;
                pages.extend(page["value"].as_array().expect("groups").clone());
                n_pages += 1;
                body["after"] = page["after"].clone();
                if body["after"].is_null() {
                    break;
                }
            }
            assert_eq!(Value::Array(pages), whole["value"], "{by:?} {orderby} {first}");
            body["after"] = Value::Null;
        }
    }
    assert!(100 < n_pages, "{n_pages}");

    // more than is sent at once, whose cursor comes with its end
    let long = json!({"groupBy": ["id", "t", "n"], "aggregations": [{"function": "count", "as": "total"}], "first": 2500});
    let beginning = groups(&fixture, "pages", &long).await;
    assert_eq!(beginning["value"].as_array().map(Vec::len), Some(2500));
    let mut next = long.clone();
    next["after"] = beginning["after"].clone();
    let end = groups(&fixture, "pages", &next).await;
    assert_eq!((end["value"].as_array().map(Vec::len), &end["after"]), (Some(500), &Value::Null));
    next["having"] = json!("total gt 0");
    let (status, text) = fixture.aggregate("pages", &next.to_string()).await;
    assert!(status == 400 && text.contains("InvalidCursor"), "{text}");
}
