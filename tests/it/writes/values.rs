//! Every kind of type goes in as it comes out, exactly.

use rowgate_tests::client::Client;
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::world::World;
use serde_json::{Value, json};

/// Column, type, what is sent, and what PostgreSQL prints then.
const VALUES: &[(&str, &str, &str, &str)] = &[
    ("int2", "smallint", "-32768", "-32768"),
    ("int8", "bigint", "9223372036854775807", "9223372036854775807"),
    ("int8_text", "bigint", "\"9007199254740993\"", "9007199254740993"),
    (
        "num",
        "numeric",
        "12345678901234567890.123456789012345678900",
        "12345678901234567890.123456789012345678900",
    ),
    ("num_nan", "numeric", "\"NaN\"", "NaN"),
    ("money_like", "numeric(12,2)", "\"1.5\"", "1.50"),
    ("f4", "real", "0.1", "0.1"),
    ("f8", "double precision", "1e300", "1e+300"),
    ("f8_inf", "double precision", "\"-Infinity\"", "-Infinity"),
    ("flag", "boolean", "true", "true"),
    ("words", "text", "\"a\\\"b\\\\c\\n\\u00e4\\ud83d\\ude00\"", "a\"b\\c\nä😀"),
    ("short", "varchar(3)", "\"abc\"", "abc"),
    ("fixed", "char(3)", "\"ab\"", "ab"),
    ("id", "uuid", "\"6b1b1e1e-0000-4000-8000-000000000001\"", "6b1b1e1e-0000-4000-8000-000000000001"),
    ("bytes", "bytea", "\"/wAB\"", "\\xff0001"),
    ("day", "date", "\"2024-02-29\"", "2024-02-29"),
    ("forever", "date", "\"infinity\"", "infinity"),
    ("clock", "time", "\"10:11:12.5\"", "10:11:12.5"),
    ("moment", "timestamptz", "\"2024-01-31T10:00:00.123456Z\"", "2024-01-31 10:00:00.123456+00"),
    ("local", "timestamp", "\"2024-01-31T10:00:00\"", "2024-01-31 10:00:00"),
    ("span", "interval", "\"P1DT2H\"", "1 day 02:00:00"),
    (
        "doc",
        "jsonb",
        "{\"b\": [1.50, null, {\"x\": \"\\u00e4\"}], \"a\": 12345678901234567890}",
        "{\"a\": 12345678901234567890, \"b\": [1.50, null, {\"x\": \"ä\"}]}",
    ),
    ("doc_text", "json", "\"just text\"", "\"just text\""),
    ("doc_list", "jsonb", "[1, [2]]", "[1, [2]]"),
    ("mood", "v.mood", "\"so so\"", "so so"),
    ("size", "v.positive", "7", "7"),
    ("range", "int4range", "\"[1,5)\"", "[1,5)"),
    ("net", "inet", "\"10.0.0.1/8\"", "10.0.0.1/8"),
    ("list", "integer[]", "[1, null, \"3\"]", "{1,NULL,3}"),
    ("grid", "text[]", "[[\"a,b\", \"{\"], [\"\\\"\", \"\\\\\"]]", "{{\"a,b\",\"{\"},{\"\\\"\",\"\\\\\"}}"),
    ("empty", "text[]", "[]", "{}"),
    ("nulls", "text[]", "[\"NULL\", null, \"\"]", "{\"NULL\",NULL,\"\"}"),
    ("docs", "jsonb[]", "[{\"a\": 1}, [2], \"x\"]", "{\"{\\\"a\\\": 1}\",[2],\"\\\"x\\\"\"}"),
    ("blobs", "bytea[]", "[\"/wA=\"]", "{\"\\\\xff00\"}"),
    (
        "place",
        "v.place",
        "{\"street\": \"Main \\\"St\\\", 5\", \"number\": null, \"tags\": [\"x\"]}",
        "(\"Main \"\"St\"\", 5\",,{x})",
    ),
    ("grids", "v.row[]", "[[1, 2], [3]]", "{\"{1,2}\",\"{3}\"}"),
    ("places", "v.place[]", "[{\"street\": \"a\\\\b\", \"number\": 2}]", "{\"(\\\"a\\\\\\\\b\\\",2,)\"}"),
    ("nothing", "text", "null", ""),
];

#[tokio::test]
async fn every_type_is_stored_as_it_was_sent_and_comes_back() {
    let columns: Vec<_> = VALUES.iter().map(|(name, ty, ..)| format!("{name} {ty}")).collect();
    let script = format!(
        "create schema v; create type v.mood as enum ('so so', 'well'); create domain v.positive as integer check (value > 0);
         create domain v.row as integer[];
         create type v.place as (street text, number integer, tags text[]);
         create table v.things (key integer primary key, {});",
        columns.join(", ")
    )
    .replace('\n', " ");
    let manifest = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: v-script}}\ndata:\n  schema.sql: |\n    {script}\n---\n\
         apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: v}}\nspec:\n  \
         database: {{bootstrap: {{configMapRef: {{name: v-script}}}}}}\n  entities:\n    \
         - {{name: things, source: {{schema: v, object: things}}, rowLevelSecurity: {{none: true}}}}\n  \
         shared: {{permissions: [{{entity: things, actions: [read, create]}}]}}\n---\n\
         apiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: v-key}}\nspec: {{tenantRef: {{name: v}}}}\n"
    );
    let server = Server::own().await;
    let mut world = World::on(&server, &[("v.yaml", &manifest)]);
    world.start().await;
    let (client, key) = (Client::new(), world.key("v-key"));
    let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
    let url = format!("{}/auth/v/api/things", world.url());

    let fields: Vec<_> = VALUES.iter().map(|(name, _, sent, _)| format!("\"{name}\": {sent}")).collect();
    let body = format!("{{\"key\": 1, {}}}", fields.join(", "));
    let made = client.send("POST", &url, &headers, &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let mut superuser = server.connect("v").await;
    for (name, ty, sent, printed) in VALUES {
        let query = format!("select coalesce({name}::text, '') as it from v.things");
        let stored = rowgate_tests::servers::postgres::rows(&mut superuser, &query).await[0]["it"].clone();
        assert_eq!(stored, json!(printed), "{name} {ty}: {sent}");
    }
    for (field, sent) in [
        ("list", "[1.5]"),
        ("list", "[true]"),
        ("list", "[3000000000]"),
        ("grid", "[7]"),
        ("grids", "[1]"),
        ("places", "[{\"number\": \"x\"}]"),
        ("place", "{\"number\": true}"),
    ] {
        let refused =
            client.send("POST", &url, &headers, &format!("{{\"key\": 9, \"{field}\": {sent}}}")).await;
        assert_eq!(refused.json()["error"]["code"], "InvalidValue", "{field} {sent}: {refused:?}");
        assert!(
            refused.json()["error"]["message"].to_string().contains(field),
            "{field} {sent}: {refused:?}"
        );
    }
    // what is read goes in again and gives the same
    let read = client.get(&format!("{url}/key/1"), &headers).await;
    let answers = (read.json(), made.json());
    assert_eq!(answers.0, answers.1);
    let mut again: Value = read.json()["value"][0].clone();
    again["key"] = json!(2);
    let made = client.send("POST", &url, &headers, &again.to_string()).await;
    assert_eq!(made.json()["value"][0], again, "{made:?}");
    let names: Vec<_> = VALUES
        .iter()
        .map(|(name, ..)| format!("a.{name}::text is not distinct from b.{name}::text"))
        .collect();
    let same = format!(
        "select {} as same from v.things a, v.things b where a.key = 1 and b.key = 2",
        names.join(" and ")
    );
    assert_eq!(rowgate_tests::servers::postgres::rows(&mut superuser, &same).await[0]["same"], json!(true));
}
