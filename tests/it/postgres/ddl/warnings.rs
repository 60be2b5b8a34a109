//! Indexes that a `$filter` cannot use: the Tenant's status names each, and tells the truth.

use std::collections::BTreeMap;

use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use serde_json::Value;

/// Type, and a value of it.
const TYPES: &[(&str, &str)] = &[
    ("int2", "1"),
    ("int4", "1"),
    ("int8", "1"),
    ("numeric", "1"),
    ("float4", "1"),
    ("float8", "1"),
    ("bool", "true"),
    ("text", "a"),
    ("varchar(4)", "a"),
    ("char(3)", "a"),
    ("name", "a"),
    ("uuid", "00000000-0000-0000-0000-000000000001"),
    ("bytea", "a"),
    ("date", "2026-01-01"),
    ("time", "10:00"),
    ("timetz", "10:00+00"),
    ("timestamp", "2026-01-01"),
    ("timestamptz", "2026-01-01"),
    ("interval", "1 day"),
    ("inet", "10.0.0.1"),
    ("macaddr", "08:00:2b:01:02:03"),
    ("bit(3)", "101"),
    ("jsonb", "{}"),
    ("int4[]", "{1}"),
    ("text[]", "{a}"),
    ("int4range", "[1,2)"),
    ("w.mood", "sad"),
    ("w.positive", "1"),
    ("w.exact", "1"),
    ("w.citext", "a"),
];

fn manifest() -> String {
    let columns: String = TYPES.iter().enumerate().map(|(i, (ty, _))| format!(", c{i} {ty}")).collect();
    let indexes: String = (0..TYPES.len()).map(|i| format!("create index on w.t (c{i});\n    ")).collect();
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: s}}\ndata:\n  schema.sql: |\n    create schema w;\n    \
         create extension citext schema w;\n    create type w.mood as enum ('sad');\n    \
         create domain w.positive as int;\n    create domain w.exact as numeric;\n    \
         create table w.t (id int primary key, owner text{columns}, hidden numeric);\n    {indexes}\
         create index on w.t (hidden);\n    create table w.open (id int primary key, c numeric);\n    \
         create index on w.open (c);\n---\napiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: warn}}\nspec:\n  \
         database: {{bootstrap: {{configMapRef: {{name: s, key: schema.sql}}}}}}\n  entities:\n    \
         - {{name: t, source: {{schema: w, object: t}}, mappings: {{c3: price}}, \
         rowLevelSecurity: {{policies: [{{name: own, column: owner, equals: {{literal: a}}}}]}}}}\n    \
         - {{name: open, source: {{schema: w, object: open}}, rowLevelSecurity: {{none: true}}}}\n---\n\
         apiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: reader}}\nspec:\n  tenantRef: {{name: warn}}\n  \
         scope:\n    permissions:\n      \
         - {{entity: t, actions: [read], fields: {{include: ['*'], exclude: [hidden]}}}}\n      \
         - {{entity: open, actions: [read], fields: {{include: ['*']}}}}\n"
    )
}

/// What the status warns of, by field.
fn warned(world: &World) -> BTreeMap<String, String> {
    let status = world.status("Tenant", "warn");
    let warnings = status["warnings"].as_array().cloned().unwrap_or_default();
    let field = |warning: &Value| {
        let text = warning.as_str()?;
        let field = text.split_once("a $filter on ")?.1.split(' ').next()?;
        Some((field.to_owned(), text.to_owned()))
    };
    warnings.iter().filter_map(field).collect()
}

/// Asks PostgreSQL itself, type by type. Seen to fail with numeric left out of the warnings.
#[tokio::test]
async fn a_field_is_warned_of_when_and_only_when_its_index_cannot_serve_a_filter() {
    let server = Server::own().await;
    let mut world = World::on(&server, &[("warn.yaml", &manifest())]).compared_every(1);
    world.start().await;
    let role = world.status("ApiKey", "reader")["role"].as_str().expect("it has a role").to_owned();
    let warnings = warned(&world);
    let mut sql = server.connect("warn").await;
    let plain = "set enable_seqscan = off; set enable_bitmapscan = off; set search_path = pg_catalog, w";
    execute(&mut sql, &format!("{plain}; set role {role}")).await;
    for (i, (ty, value)) in TYPES.iter().enumerate() {
        let field = if i == 3 { "price".to_owned() } else { format!("c{i}") };
        execute(&mut sql, &format!("prepare q{i} as select id from w.t where c{i} = '{value}'::{ty}")).await;
        let plan = explain(&mut sql, i).await;
        let warning = warnings.get(&field);
        assert_eq!(plan.contains("Index Cond"), warning.is_none(), "{ty}: {warning:?}\n{plan}");
        if let Some(warning) = warning {
            assert!(warning.contains("< <= = > >= of ") && warning.len() < 300, "{warning}");
        }
    }
    assert!(warnings["price"].contains("of numeric "), "{warnings:?}");
    assert!(!warnings.contains_key("hidden"), "nobody may filter by it");
    // A policy `true` is no barrier: PostgreSQL folds it away.
    assert!(!warnings.contains_key("c"), "{warnings:?}");

    let mut owner = server.connect("warn").await;
    execute(&mut owner, "drop index w.t_c3_idx; alter table w.t drop column c22").await;
    until("the end of both warnings", async || {
        let now = warned(&world);
        (!now.contains_key("price") && !now.contains_key("c22") && now.len() + 2 == warnings.len())
            .then_some(())
    })
    .await;
}

async fn explain(sql: &mut sqlx::PgConnection, i: usize) -> String {
    let query = format!("explain (costs off) execute q{i}");
    let lines: Vec<String> = text(sql, &query).await;
    lines.join("\n")
}

#[expect(clippy::disallowed_methods, reason = "the text is the test's own; no request reaches it")]
async fn text(sql: &mut sqlx::PgConnection, query: &str) -> Vec<String> {
    let rows = sqlx::query_scalar(sqlx::AssertSqlSafe(query.to_owned())).fetch_all(sql).await;
    rows.unwrap_or_else(|error| panic!("{query}: {error}"))
}
