//! What PostgreSQL works on without looking up: no deadline ends it, so that the sizes of values are looked at before.

use serde_json::json;

use super::fixture::Lab;

/// Each takes minutes to days, and neither a cancel nor the end of its session is heard of. `$long` and `$short` are texts of millions of letters.
const DEAF: [&str; 28] = [
    "select length(translate($long, $short, 'y')) as n",
    "select strpos($long, $short) as n",
    "select position($short in $long) as n",
    "select length(replace($long, $short, 'x')) as n",
    "select length(btrim($long, $short)) as n",
    "select length(ltrim($long, $short)) as n",
    "select length(trim(trailing $short from $long)) as n",
    "select length(split_part($long, $short, 2)) as n",
    "select cardinality(string_to_array($long, $short)) as n",
    "select $long like '%' || $short || '%' as n",
    "select $long ilike '%' || $short as n",
    "select to_date($long, $short) as n",
    "select $array && $other as n",
    "select $array @> $other or $other <@ $array as n",
    "select $json ?| $words as n",
    "select jsonb_path_exists($pairs, '$.a[*] == $.b[*]') as n",
    "select $pairs @@ '$.a[*] == $.b[*]' as n",
    "select $pairs @? '$ ? (@.a[*] == @.b[*])' as n",
    "select jsonb_path_match('{}', '$a[*] == $b[*]', $pairs) as n",
    "select $long < any(string_to_array($short, 'a')) as n",
    "select $long collate \"C\" >= all(array['a', $short, 'c']) as n",
    "select strpos($long, repeat('a', 1000)) as n",
    "select strpos(x, '$needle') as n from (select $long as x) x",
    "with x as (select $long as x) select x ~~ any(array['%$needle%']) as n from x",
    "select ts_rank((select string_agg('w' || g || ':1,2,3,4,5', ' ') from generate_series(1, 50000) g)::tsvector, plainto_tsquery('simple', (select string_agg('w' || g, ' ') from generate_series(1, 2000) g))) as n",
    "select ts_rank((select string_agg('w' || g || ':1,2,3,4,5', ' ') from generate_series(1, 50000) g)::tsvector, to_tsquery('simple', 'a:*&aa:*&aaa:*&aaaa:*&aaaaa:*&aaaaaa:*&aaaaaaa:*&aaaaaaaa:*&aaaaaaaaa:*')) as n",
    "with x as (select $long as x) select distinct on (strpos(x.x, '$needle')) 1 as n from x",
    "select strpos(x, 'aaaaaaaaaaaaaaaaaaaaab') + strpos(x, 'aaaaaaaaaaaaaaaaaaaaac') + strpos(x, 'aaaaaaaaaaaaaaaaaaaaad') as n from (select $huge as x) x",
];

/// Seen to fail where none is looked at: the first statement does not end.
#[tokio::test]
async fn what_no_deadline_ends_is_refused_by_the_sizes_of_its_values() {
    let lab = Lab::with_timeout("20s").await;
    for query in DEAF {
        let query = query
            .replace("$needle", &"a".repeat(200))
            .replace("$long", "(select string_agg('aaaaaaaaaa', '') from generate_series(1, 500000))")
            .replace("$short", "(select string_agg('aaaaaaaaaa', '') || 'b' from generate_series(1, 200000))")
            .replace("$huge", "(select string_agg(repeat('a', 1000), '') from generate_series(1, 50000))")
            .replace("$pairs", "(select jsonb_build_object('a', jsonb_agg(g), 'b', jsonb_agg(-g)) from generate_series(1, 100000) g)")
            .replace("$array", "(select array_agg(g) from generate_series(1, 500000) g)")
            .replace("$other", "(select array_agg(-g) from generate_series(1, 500000) g)")
            .replace("$json", "(select jsonb_agg(g::text) from generate_series(1, 300000) g)")
            .replace("$words", "(select array_agg('x' || g) from generate_series(1, 300000) g)");
        let (status, code, message) = lab.refused("north", &query, json!({})).await;
        assert_eq!((status, code.as_str()), (413, "TooLarge"), "{query}: {message}");
    }
    for query in [
        "select strpos('0'::bit(80000000)::text, '1'::bit(40000000)::text) as n",
        "select strpos(repeat(repeat('a', 1000), 1000), 1e131071::text) as n",
        "select strpos(array[$numbers]::text, '2$needle') as n",
        "select word::char(10000000) like '%$needle%' as n from notes",
        "select length(trim($long, $short)) as n",
        "select array['x'::char(10000000)] && (select array_agg(g::text::char(5)) from generate_series(1, 1000) g) as n",
        "select n = any(w) as n from (select 'x'::char(10000000) as n, (select array_agg(g::text::bpchar) from generate_series(1, 100000) g) as w) x",
    ] {
        let query = query
            .replace("$numbers", &["1e131000"; 9].join(", "))
            .replace("$needle", &" ".repeat(900))
            .replace("$long", "(select string_agg('aaaaaaaaaa', '') from generate_series(1, 500000))")
            .replace(
                "$short",
                "(select string_agg('aaaaaaaaaa', '') || 'b' from generate_series(1, 200000))",
            );
        let (status, code, message) = lab.refused("north", &query, json!({})).await;
        assert_eq!((status, code.as_str()), (413, "TooLarge"), "{query}: {message}");
    }
    let minus = "select x.a - x.b as n from (select jsonb_agg(g::text) as a, array_agg('x' || g) as b from generate_series(1, 300000) g) x";
    let (status, code, message) = lab.refused("north", minus, json!({})).await;
    assert_eq!((status, code.as_str()), (400, "InvalidSql"), "{message}");
    let in_from = "select t from string_to_table('a', (select word from notes limit 1)) t";
    let (_, code, message) = lab.refused("north", in_from, json!({})).await;
    assert!(code == "InvalidSql" && message.contains("second argument"), "{message}");
    let rows_of_rows = "select string_to_table(word, region) as t from notes";
    let (_, code, message) = lab.refused("north", rows_of_rows, json!({})).await;
    assert!(code == "InvalidSql" && message.contains("gives rows"), "{message}");
    let of_rows = "select strpos(max(word), max(region)) as n from notes";
    let (_, code, message) = lab.refused("north", of_rows, json!({})).await;
    assert!(code == "InvalidSql" && message.contains("sub-select"), "{message}");
    for (query, says) in [
        ("select jsonb_path_exists('{}', '$.a[0 to last, 0 to last] == $.b') as n", "no list of subscripts"),
        ("select '{}' @@ ('$.a[*]' || ' == $.b[*]')::jsonpath as n", "a jsonpath is written in the query"),
        ("select jsonb_path_exists('{}', '$.keyvalue().id == $.b') as n", "no keyvalue()"),
        ("select jsonb_path_exists('{}', word) as n from notes", "a jsonpath is written in the query"),
        (
            "select jsonb_path_exists('{}', ('$.a == ' || word)::jsonpath) as n from notes",
            "a jsonpath is written in the query",
        ),
        ("select '{}' @? '$.a == $.b'::jsonpath as n", "without a type"),
        (
            "select to_jsonb(word) @@ coalesce(null, '$'::jsonpath, '$.a == $.b') as n from notes",
            "a cast to jsonpath",
        ),
        ("select to_jsonb(word) @@ (select '$.a'::jsonpath) as n from notes", "a cast to jsonpath"),
        ("select x from jsonb_path_query('{}', '$.a == $.b') x", "jsonb_path_query_array"),
        (
            "select ts_headline('simple', word, 'a', 'MaxFragments = 1000') as n from notes",
            "at most 3 digits",
        ),
        (
            "select ts_headline(word, to_tsquery('a'), 'maxwords=''1000''') as n from notes",
            "at most 3 digits",
        ),
        (
            "select ts_headline(word, to_tsquery('a'), 'StartSel=a MaxFragments=9999999') as n from notes",
            "at most 3 digits",
        ),
        (
            "select ts_headline(word, to_tsquery('a'), 'MaxFragments=0xFFFFFF') as n from notes",
            "at most 3 digits",
        ),
        (
            "select ts_headline('simple', word, to_tsquery('a'), region) as n from notes",
            "written in the query",
        ),
    ] {
        let (_, code, message) = lab.refused("north", query, json!({})).await;
        assert!(code == "InvalidSql" && message.contains(says), "{query}: {message}");
    }
    let many = format!("select {} 0 as n from (select word as x from notes) x", "length(x) + ".repeat(301));
    let (_, code, message) = lab.refused("north", &many, json!({})).await;
    assert!(code == "InvalidSql" && message.contains("at most 300"), "{message}");
    let many = format!("select greatest({} x) as n from (select word as x from notes) x", "x, ".repeat(301));
    let (_, code, message) = lab.refused("north", &many, json!({})).await;
    assert!(code == "InvalidSql" && message.contains("at most 300"), "{message}");
    let made = "(select jsonb_agg(g) from generate_series(1, 10) g) as k";
    let (ks, parts) = ("k, ".repeat(301), "k, ".repeat(151));
    for what in [
        format!("k in ({ks} k)"),
        format!("({ks} k) = ({ks} k)"),
        format!("({parts} k) between ({parts} k) and ({parts} k)"),
        format!("{} 1 = 1", "max(k::text) filter (where k is null) = '' or ".repeat(151)),
        format!("case ({parts} k) when ({parts} k) then 1 when ({parts} k) then 2 end"),
    ] {
        let (_, code, message) =
            lab.refused("north", &format!("select {what} as n from (select {made}) x"), json!({})).await;
        assert!(code == "InvalidSql" && message.contains("at most 300"), "{what}: {message}");
    }
    for what in ["id % n + ", "1e1000 * id / n + ", "mod(id, n) + ", "id ^ n + "] {
        let many = format!("select {} 0 as n from (select id, id as n from notes) x", what.repeat(201));
        let (_, code, message) = lab.refused("north", &many, json!({})).await;
        assert!(code == "InvalidSql" && message.contains("at most 200"), "{what}: {message}");
    }
    let parts = "select id from notes where word like '%' || @p || @q || '%' || @p";
    let given = json!({"p": "x".repeat(334), "q": "x"});
    let (_, code, message) = lab.refused("north", parts, given).await;
    assert!(code == "InvalidValue" && message.contains("333 bytes"), "{message}");
    for query in ["select '{}' @? @p as n", "select jsonb_path_exists('{}', @p::jsonpath) as n"] {
        let (_, code, message) = lab.refused("north", query, json!({"p": "$.a == $.b"})).await;
        assert!(code == "InvalidValue" && message.contains("compares two paths"), "{query}: {message}");
    }
    let long = "x".repeat(1_001);
    let (_, code, message) =
        lab.refused("north", "select id from notes where word like @p", json!({"p": long})).await;
    assert!(code == "InvalidValue" && message.contains("1000 bytes"), "{message}");
}

#[tokio::test]
async fn what_is_bounded_gives_what_it_gave() {
    let lab = Lab::open().await;
    let one = "select id, word, region, substring(word, 1, 1) as c, array[word] as w, to_jsonb(array[word]) as j, id as n from notes where id = 2";
    for (expression, expected) in [
        ("replace(word, c, 'x')", json!("x2")),
        ("strpos(word, c)", json!(1)),
        ("position(c in word)", json!(1)),
        ("trim(both c from word)", json!("2")),
        ("ltrim(word, c)", json!("2")),
        ("translate(word, c, region)", json!("n2")),
        ("split_part(word, c, 2)", json!("2")),
        ("cardinality(string_to_array(word, c))", json!(2)),
        ("word like c || '%'", json!(true)),
        ("word not ilike '%' || c", json!(true)),
        ("replace(null, c, 'x')", json!(null)),
        ("to_date('2024-01-02', 'YYYY-' || case when n = 2 then 'MM-DD' end)", json!("2024-01-02")),
        ("w && w", json!(true)),
        ("max(word) over () = 'n2' and n * 2.5 in (5, n::numeric, id)", json!(true)),
        ("w @> string_to_array(word, region)", json!(true)),
        ("word like (region collate \"C\")", json!(false)),
        ("word collate \"C\" like c || '%'", json!(true)),
        ("word like c || '!%' escape substring('!' from n::int - 1)", json!(false)),
        ("word = any(w)", json!(true)),
        ("word = any(string_to_array(@list, ','))", json!(true)),
        ("trim(word, c)", json!("2")),
        ("j ?| w", json!(true)),
        ("j ?& w", json!(true)),
        ("j - word", json!([])),
        ("n - id", json!(0)),
        ("n - coalesce(id, 0) - (select max(k.id) from kinds k)", json!(-3)),
        ("date '2024-01-03' - (n - 1)::int", json!("2024-01-02")),
        ("'2024-01-03' - date '2024-01-01'", json!(2)),
        ("jsonb_path_exists(j, '$[*] ? (@ == \"n2\")')", json!(true)),
        ("jsonb_path_exists(jsonb_build_object('a', j), '$.a[*] == $.a[0]')", json!(true)),
        ("jsonb_path_query_array(j, '$[*] ? (@ == $x)', jsonb_build_object('x', word))", json!(["n2"])),
        ("jsonb_path_match('{\"a\": 1, \"b\": 2}', '$.a < $.b')", json!(true)),
        ("jsonb_path_exists(path => '$.a == $.b', silent => true, target => to_jsonb(n))", json!(true)),
        ("strpos(@list, @list) + strpos(word, word)", json!(2)),
        ("j @? @list", json!(true)),
        ("j @@ '$[0] == \"n2\"'::jsonpath", json!(true)),
        ("to_tsvector('simple', word) @@ to_tsquery('simple', c || '2')", json!(true)),
        ("ts_headline('simple', word, to_tsquery('simple', word))", json!("<b>n2</b>")),
        ("ts_headline(word, 'n2'::tsquery, 'StartSel=_, StopSel=_, MaxWords=100')", json!("_n2_")),
        ("ts_rank(to_tsvector('simple', word), plainto_tsquery('simple', @list)) < 0.01", json!(true)),
        (
            "ts_rank('{0.1,0.2,0.3,0.4}', to_tsvector('simple', word), to_tsquery('simple', word), 1) > 0",
            json!(true),
        ),
        ("n < any(array[1, 5])", json!(true)),
        ("word >= all(string_to_array(@list, ','))", json!(true)),
        ("word like @list", json!(false)),
        ("word like any (array['x%', 'n%'])", json!(true)),
        ("word ilike any (string_to_array(@list, ','))", json!(true)),
        ("word not like all (array['x%', 'y%'])", json!(true)),
        ("word not like any (array['n%', 'n_'])", json!(false)),
        ("n - lag(n, 1, n) over (order by n)", json!(0)),
    ] {
        let query = format!("select {expression} as r from ({one}) x");
        let list = match expression {
            _ if expression.contains("@?") => "$[0]",
            _ if expression.contains(">=") => "a,b",
            _ => "n2,x",
        };
        let parameters = if query.contains("@list") { json!({"list": list}) } else { json!({}) };
        assert_eq!(lab.told("north", &query, parameters).await["value"], json!([{"r": expected}]), "{query}");
    }
    for query in [
        "select n - min(id) as r from (select id, id as n from notes where id = 2) x group by n, n - id having count(*) - max(n) < 5",
        "select count(*) - 1 as r from notes where replace(word, region, '') = word and id < 4 group by replace(word, region, '')",
    ] {
        assert_eq!(lab.rows("north", query).await, json!([{"r": 0}]), "{query}");
    }
}
