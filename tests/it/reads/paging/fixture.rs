//! Tenants with four entities over those columns, two keys that see half of the rows, and the same role in plain SQL.

use std::fmt::Write as _;

use rowgate_tests::servers::postgres::execute;
use rowgate_tests::world::World;
use serde_json::Value;
use sqlx::PgConnection;

use super::columns::{COLUMNS, Column};

/// What the random questions know of an entity.
#[derive(Debug)]
pub(super) struct Entity {
    pub(super) name: &'static str,
    pub(super) key: &'static [&'static str],
    pub(super) columns: &'static [Column],
}

pub(super) const ENTITIES: &[Entity] = &[
    Entity { name: "loose", key: &["id"], columns: COLUMNS },
    Entity { name: "strict", key: &["k1", "k2"], columns: COLUMNS },
    Entity { name: "shown", key: &["id"], columns: COLUMNS },
    Entity { name: "odd", key: &["k"], columns: &[] },
    Entity { name: "alien", key: &["k"], columns: &[] },
];

/// One tenant in a running process of its own.
pub(super) struct Fixture {
    pub(super) world: World,
    client: reqwest::Client,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) text: String,
}

impl Fixture {
    /// A world with these tenants, all alike.
    pub(super) async fn new(tenants: &[&str]) -> Fixture {
        let mut world = World::new(&[]).await;
        for tenant in tenants {
            world.write(&format!("{tenant}.yaml"), &manifest(tenant));
        }
        world.start().await;
        Fixture { world, client: reqwest::Client::new() }
    }

    /// `url` is whole, or a path of this world.
    pub(super) async fn get(&self, key: &str, url: &str) -> Answer {
        let url = if url.starts_with('/') { format!("{}{url}", self.world.url()) } else { url.to_owned() };
        let sent = self.client.get(&url).header("X-API-Key", key).send().await;
        let response = sent.unwrap_or_else(|error| panic!("GET {url}: {error}"));
        let status = response.status().as_u16();
        Answer { status, text: response.text().await.unwrap_or_else(|error| panic!("GET {url}: {error}")) }
    }

    /// Plain SQL as the role of the key that the ApiKey `name` has.
    pub(super) async fn as_key(&self, database: &str, name: &str) -> PgConnection {
        let mut connection = self.world.superuser(database).await;
        let status = self.world.status("ApiKey", name);
        let role = status["role"].as_str().unwrap_or_else(|| panic!("no role of {name} in {status}"));
        execute(
            &mut connection,
            &format!("set role {role}; set search_path = pg_catalog; set timezone = 'UTC'"),
        )
        .await;
        connection
    }
}

impl Answer {
    /// The rows as they were written, and where the next page is.
    pub(super) fn page(&self, asked: &str) -> (&str, Option<&str>) {
        let rows = self.text.strip_prefix("{\"value\":[").filter(|_| self.status == 200);
        let rows = rows.unwrap_or_else(|| panic!("{asked}: {} {}", self.status, self.text));
        let (rows, end) = match rows.rsplit_once("],\"count\":") {
            Some((rows, end)) => (rows, end.trim_start_matches(|c: char| c.is_ascii_digit())),
            None => rows.rsplit_once(']').expect("the rows come first"),
        };
        let link = end.strip_prefix(",\"nextLink\":\"").map(|link| link.strip_suffix("\"}"));
        match link {
            Some(link) => (rows, Some(link.expect("the link comes last"))),
            None if end == "}" => (rows, None),
            None => panic!("{asked}: {end}"),
        }
    }

    /// What `$count=true` adds.
    pub(super) fn count(&self) -> Option<usize> {
        let body: Value = serde_json::from_str(&self.text).unwrap_or_default();
        body["count"].as_u64().map(|count| count as usize)
    }

    pub(super) fn rows(&self, asked: &str) -> Vec<Value> {
        let (rows, _) = self.page(asked);
        serde_json::from_str(&format!("[{rows}]")).unwrap_or_else(|error| panic!("{asked}: {error}"))
    }

    pub(super) fn error_code(&self) -> String {
        let body: Value = serde_json::from_str(&self.text).unwrap_or_default();
        body["error"]["code"].as_str().unwrap_or(&self.text).to_owned()
    }
}

/// The column `n` of what the test itself asks in SQL.
#[expect(clippy::disallowed_methods, reason = "the text is the test's own; no request reaches it")]
pub(super) async fn numbers(connection: &mut PgConnection, sql: &str) -> Result<Vec<i32>, sqlx::Error> {
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql.to_owned())).fetch_all(connection).await
}

fn manifest(tenant: &str) -> String {
    let script = script().replace('\n', "\n    ");
    let mut text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {tenant}-script}}\ndata:\n  schema.sql: |\n    {script}\n\
         ---\napiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {tenant}}}\nspec:\n  \
         database: {{bootstrap: {{configMapRef: {{name: {tenant}-script, key: schema.sql}}}}}}\n  entities:\n"
    );
    for Entity { name, key, .. } in ENTITIES {
        let rest = match *name {
            "shown" => "kind: View",
            _ => "rowLevelSecurity: {policies: [{name: own, column: owner, equals: {claim: owner}}]}",
        };
        let key = key.join(", ");
        writeln!(
            text,
            "    - {{name: {name}, source: {{schema: t, object: {name}}}, keyFields: [{key}], {rest}}}"
        )
        .expect("writing to a string");
    }
    for key in ["reader", "twin"] {
        write!(
            text,
            "---\napiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: {tenant}-{key}}}\nspec:\n  \
             tenantRef: {{name: {tenant}}}\n  claims: {{owner: a}}\n  scope:\n    permissions:\n"
        )
        .expect("writing to a string");
        for Entity { name, .. } in ENTITIES {
            writeln!(text, "      - {{entity: {name}, actions: [read], fields: {{include: ['*']}}}}")
                .expect("writing to a string");
        }
    }
    text
}

/// Values are picked by a hash of row and column, so every run has the same rows. Rows of `odd` stand at the ends of
/// its key's type.
fn script() -> String {
    let mut script = "create schema t;\n\
         create collation t.blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false);\n\
         create type t.mood as enum ('sad', 'ok', 'happy');\n\
         create domain t.positive as int check (value > 0);\n\
         create domain t.folded as text collate t.blind;\n"
        .to_owned();
    let more = |null: &str| -> String {
        COLUMNS.iter().map(|c| format!(", {} {}{null}", c.name, c.declared)).collect()
    };
    let pick = |nulls: usize| -> String {
        let one = |c: &Column| {
            let values: Vec<String> =
                c.values.iter().map(|v| format!("'{}'", v.replace('\'', "''"))).collect();
            let n = c.values.len() + nulls;
            format!(
                ", ((array[{}]::text[])[1 + (hashtextextended(i || '{}', 0) & 1048575) % {n}])::{}",
                values.join(","),
                c.name,
                c.ty
            )
        };
        COLUMNS.iter().map(one).collect()
    };
    let owner = "case when i % 2 = 0 then 'a' else 'b' end";
    let (loose, strict) = (more(""), more(" not null"));
    let (with_nulls, without) = (pick(2), pick(0));
    write!(
        script,
        "create table t.loose (id bigint primary key, n int not null, owner text not null{loose});\n\
         insert into t.loose select i * 7 % 331, i, {owner}{with_nulls} from generate_series(1, 330) i;\n\
         create table t.strict (k1 text collate t.blind, k2 numeric, n int not null, owner text not null{strict}, \
         primary key (k1, k2));\n\
         insert into t.strict select chr((65 + i % 5 + i % 2 * 32)::int), case when i % 40 < 2 then 'NaN' else i / 5.0 end, \
         i, {owner}{without} from generate_series(1, 260) i where i % 40 > 1 or i in (40, 41);\n\
         create view t.shown as select * from t.loose;\n\
         create table t.odd (k float8 primary key, n int not null, owner text not null);\n\
         insert into t.odd select v, i, 'a' from unnest('{{NaN,Infinity,-Infinity,0,1e-300,-1.5,0.1}}'::float8[]) \
         with ordinality u(v, i);\n\
         create extension citext schema t;\n\
         create extension hstore schema t;\n\
         create extension ltree schema t;\n\
         create extension cube schema public;\n\
         create domain t.must as int not null;\n\
         create table t.alien (k int primary key, n int not null, owner text not null, c t.citext, cs t.citext[], \
         must t.must, \
         long text not null, txt text, h t.hstore, path t.ltree, q public.cube);\n\
         insert into t.alien select i, i, 'a', (array['a', 'A', 'b', null])[i], array[(array['a', 'A', 'B', 'a'])[i]]::t.citext[], \
         i, repeat(chr(96 + i), 9000), 'a', 'a=>1', (array['a', 'a.b', 'b'])[i]::t.ltree, '(1)' from generate_series(1, 4) i;\n\
         insert into t.alien values (5, 5, 'a', 'c', '{{}}', (select must from t.alien where false), '', null, null, null, null);\n"
    )
    .expect("writing to a string");
    script
}
