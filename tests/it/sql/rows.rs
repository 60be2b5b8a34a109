//! What a SELECT gives: the rows of its key, in the values of REST, with the types of its columns.

use serde_json::{Value, json};

use super::fixture::Lab;

#[tokio::test]
async fn a_value_looks_as_in_rest_whatever_its_type() {
    let lab = Lab::open().await;
    let rest = lab.get("plain", "/auth/lab/api/kinds?$orderby=id").await.rows();
    assert_eq!(rest.len(), 3);
    let told = lab.told("plain", "select * from lab.kinds order by id", json!({})).await;
    assert_eq!(told["value"], Value::from(rest));
    assert_eq!(told["truncated"], false);
    let column = |name: &str| {
        let columns = told["columns"].as_array().expect("a list");
        let found = columns.iter().find(|column| column["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {columns:?}"))["type"].clone()
    };
    for (name, ty) in [
        ("id", "integer"),
        ("n", "numeric"),
        ("n2", "numeric(12,2)"),
        ("v", "character varying(9)"),
        ("tstz", "timestamp with time zone"),
        ("m", "lab.mood"),
        ("p", "integer"),
        ("pr", "lab.pair"),
        ("ta", "text[]"),
    ] {
        assert_eq!(column(name), ty, "{name}");
    }
}

#[tokio::test]
async fn a_parameter_has_the_type_that_postgresql_finds_for_it() {
    let lab = Lab::open().await;
    for (query, parameters, expected) in [
        ("select word from lab.notes where id = @id", json!({"id": 7}), json!([{"word": "hidden_south7"}])),
        (
            "select word from lab.notes where id = @ID and region = @r",
            json!({"id": "8", "r": "north"}),
            json!([{"word": "n8"}]),
        ),
        (
            "select count(*) as n from lab.notes where id = any(@ids)",
            json!({"ids": [1, 2, 300, null]}),
            json!([{"n": 2}]),
        ),
        (
            "select @a::numeric + 1 as a",
            json!({"a": 12_345_678_901_234_567_890_u64}),
            json!([{"a": 12_345_678_901_234_567_891_u64}]),
        ),
        ("select @a::jsonb -> 'x' as a", json!({"a": {"x": [1, null]}}), json!([{"a": [1, null]}])),
        (
            "select @a::text as a, @b::boolean as b",
            json!({"a": "'; --", "b": true}),
            json!([{"a": "'; --", "b": true}]),
        ),
        ("select @a::date + 1 as a", json!({"a": "2024-02-28"}), json!([{"a": "2024-02-29"}])),
        (
            "select @a::timestamptz as a",
            json!({"a": "2024-01-01T00:00:00+02:00"}),
            json!([{"a": "2023-12-31T22:00:00Z"}]),
        ),
        (
            "select @a::text[] as a",
            json!({"a": ["a,b", null, "\"c\\"]}),
            json!([{"a": ["a,b", null, "\"c\\"]}]),
        ),
        ("select @a::int[] as a", json!({"a": [[1, 2], [3, 4]]}), json!([{"a": [[1, 2], [3, 4]]}])),
        ("select coalesce(@a::int, 5) as a", json!({"a": null}), json!([{"a": 5}])),
        ("select word from lab.notes limit @n offset @m", json!({"n": 1, "m": 1}), json!([{"word": "n2"}])),
        ("select @a || 'x' as a, @a as b", json!({"a": "y"}), json!([{"a": "yx", "b": "y"}])),
        ("select encode(@a::bytea, 'hex') as a", json!({"a": "AP8="}), json!([{"a": "00ff"}])),
        (
            "select @a::uuid as a",
            json!({"a": "00000000-0000-0000-0000-0000000000AB"}),
            json!([{"a": "00000000-0000-0000-0000-0000000000ab"}]),
        ),
    ] {
        assert_eq!(lab.told("plain", query, parameters).await["value"], expected, "{query}");
    }
}

#[tokio::test]
async fn a_key_reads_its_own_rows_and_columns_in_every_form_of_a_select() {
    let lab = Lab::open().await;
    let all = json!([{"n": 50, "regions": ["north"]}]);
    let query = "select count(*) as n, array_agg(distinct region) as regions from lab.notes";
    assert_eq!(lab.rows("north", query).await, all);
    assert_eq!(lab.rows("plain", query).await[0]["n"], 100);
    for query in [
        "with a as (select id from lab.notes) select count(*) as n from a",
        "select count(*) as n from lab.notes where int8range(1, id, '[]') && int8range(id, null) and numrange(0, 1e3) @> id::numeric",
        "select count(*) as n from (select id from lab.notes union select id from notes) a",
        "select count(*) as n from lab.notes a join lab.notes b using (id)",
        "select sum(1) over () as n from lab.notes limit 1",
        "select (select count(*) from notes) as n",
        "with recursive a (id) as (select min(id) from lab.notes union all select id + 2 from a where id < 100) select count(*) as n from a",
        "select count(*) as n from lab.notes a, lateral (select b.id from lab.notes b where b.id = a.id) c",
        "select count(*) as n from lab.notes group by region having count(*) > 1",
    ] {
        assert_eq!(lab.rows("north", query).await, json!([{"n": 50}]), "{query}");
    }
    assert_eq!(lab.rows("south", "select count(*) as n from lab.notes").await, json!([{"n": 50}]));
    assert_eq!(lab.rows("north", "select 1 as a where false").await, json!([]));
    // of a table of which it may not read all columns, all that it may
    let first = json!([{"id": 2, "region": "north", "word": "n2"}]);
    for query in [
        "select * from lab.notes order by id limit 1",
        "select notes.* from notes order by notes.id limit 1",
        "select lab.notes.id, lab.notes.region, n.word from lab.notes join notes n using (id) order by 1 limit 1",
    ] {
        assert_eq!(lab.rows("north", query).await, first, "{query}");
    }
    let grouped = "select id, i4 from lab.kinds group by id order by id limit 1";
    assert_eq!(lab.rows("north", grouped).await, json!([{"id": 1, "i4": 2_147_483_647}]));
    let tables = "select table_name from information_schema.tables where table_schema = 'lab' and table_name <> 'open'";
    assert_eq!(lab.rows("south", tables).await, json!([{"table_name": "notes"}]));
}

#[tokio::test]
async fn a_plan_is_shown_to_a_key_that_sees_all_rows_and_nothing_runs_for_it() {
    let lab = Lab::open().await;
    let body =
        json!({"query": "select count(*) as n from generate_series(1, 1000000000000)", "explain": true});
    let reply = lab.send("plain", &body.to_string()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let plan = &reply.json()["plan"][0]["Plan"];
    assert_eq!(plan["Node Type"], "Aggregate");
    assert!(plan["Actual Rows"].is_null() && plan["Plan Rows"].is_number(), "{plan}");
    let kinds = json!({"query": "select id from lab.kinds where id = 1", "explain": true});
    let reply = lab.send("plain", &kinds.to_string()).await;
    assert_eq!((reply.status.as_u16(), reply.body.contains("kinds_pkey")), (200, true), "{reply:?}");
    let notes = json!({"query": "select id from lab.notes", "explain": true});
    for (key, body, part) in
        [("north", &body, "without a scope"), ("plain", &notes, "without row-level security")]
    {
        let reply = lab.send(key, &body.to_string()).await;
        assert_eq!(
            (reply.status.as_u16(), &reply.json()["error"]["code"]),
            (403, &json!("Forbidden")),
            "{reply:?}"
        );
        assert!(reply.body.contains(part), "{reply:?}");
    }
}
