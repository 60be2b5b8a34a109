//! One case three ways: over HTTP, as the key's role in plain SQL, and as the model has it. All three have to agree, to
//! the byte.

use reqwest::StatusCode;
use rowgate_tests::client::{Client, Reply};
use serde_json::{Value, json};
use sqlx::{PgConnection, Row as _};

use super::asking::{Case, Question, Rows, selected};
use super::model::Who;
use super::world::{Drawn, Entity, Key, Relation};
use crate::reads::paging::columns::{Column, Writing};
use crate::reads::paging::question::escape;

/// A tenant that runs, and the connections over which it is asked.
pub(super) struct Tenant {
    pub(super) drawn: Drawn,
    /// The address of a data plane.
    pub(super) url: String,
    pub(super) client: Client,
    /// Key string and role, by key.
    pub(super) secrets: Vec<(String, String)>,
    /// The superuser, who becomes each role in turn.
    pub(super) roles: PgConnection,
    /// The superuser, for the model.
    pub(super) model: PgConnection,
    /// The key values of every row of a relation.
    pub(super) known: Vec<Vec<Vec<Option<String>>>>,
}

/// What an agreed answer was, to see that the cases are worth asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Rows,
    NoRow,
    OneRow,
    HiddenRow,
    NoEntity,
    UnknownField,
    Entities,
}

/// How two of the three differ.
pub(super) type Difference = String;

impl Tenant {
    pub(super) async fn check(&mut self, case: &Case) -> Result<Kind, Difference> {
        let Tenant { drawn, secrets, .. } = self;
        let (secret, role) = secrets[case.key].clone();
        let (key, entity) = (&drawn.keys[case.key], &drawn.entities[case.entity]);
        let relation = drawn.relation(entity);
        let readable = drawn.readable(key, case.entity);
        let served = entity.rest && !readable.is_empty();
        let base = format!("{}/auth/{}/api", self.url, drawn.slug);
        let at = format!("{base}/{}", entity.name);
        let headers = [("x-api-key", secret.as_str())];
        let who = Who { key, role: &role };
        let visible = format!("{} r", drawn.visible(entity.relation, who));
        let stored = format!("app.{} r", relation.name);

        let (path, select, rest, page) = match &case.question {
            Question::Entities => {
                let reply = self.client.get(&base, &headers).await;
                let expected = json!({"value": listed(drawn, key, &base)});
                if reply.status != StatusCode::OK || reply.json() != expected {
                    return Err(format!("{reply:?}\nand not {expected}"));
                }
                let mut held =
                    texts(&mut self.roles, &held(&role)).await.map_err(|error| error.to_string())?;
                held.sort();
                let meant = meant(drawn, key);
                return match held == meant {
                    true => Ok(Kind::Entities),
                    false => Err(format!("{role} holds the columns {held:?}\nand not {meant:?}")),
                };
            }
            Question::Hidden { option, column } => {
                let reply = self.client.get(&format!("{at}?{option}"), &headers).await;
                let kind = refused(&reply, served)?;
                if let Some(column) = column {
                    let sql = format!("select (r.{column} is null)::text from {stored}");
                    let may = drawn.reached(key, entity.relation).contains(column);
                    let answered = as_role(&mut self.roles, &role, &sql).await;
                    if may != answered.is_ok() {
                        return Err(format!("{role} and the column {column}: {answered:?}"));
                    }
                }
                return Ok(kind);
            }
            Question::Rows(rows) | Question::Head(rows) => {
                (format!("{at}?{}", rows.options(entity)), &rows.select, rows.rest(relation), Some(rows))
            }
            Question::Row { nth, select } => {
                let all = &self.known[entity.relation];
                let values = &all[nth % all.len()];
                let path = format!(
                    "{at}{}?{}",
                    parts(entity, relation, values),
                    selected(select.as_deref(), entity)
                );
                (path, select, named(relation, values), None)
            }
        };
        let columns = select.as_ref().unwrap_or(&readable);
        let sql = |from: &str| {
            format!("select to_json(a)::text from (select {} from {from} {rest}) a", shown(entity, columns))
        };
        if readable.is_empty() {
            let reply = self.client.get(&path, &headers).await;
            if reply.status != StatusCode::NOT_FOUND || reply.json()["error"]["code"] != "EntityNotFound" {
                return Err(format!("{reply:?}\nand not 404 for {path}"));
            }
            let reached = drawn.reached(key, entity.relation);
            let answered = as_role(&mut self.roles, &role, &format!("select 1::text from {stored}")).await;
            return match answered.is_ok() != reached.is_empty() {
                true => Ok(Kind::NoEntity),
                false => Err(format!("{role} reads {reached:?} of {stored}: {answered:?}")),
            };
        }
        let expected = texts(&mut self.model, &sql(&visible))
            .await
            .map_err(|error| format!("{error}: {}", sql(&visible)))?;
        let plain = as_role(&mut self.roles, &role, &sql(&stored)).await?;
        if plain != expected {
            return Err(format!(
                "{role} reads by SQL {plain:#?}\nand the model {expected:#?}\n{}",
                sql(&visible)
            ));
        }
        if let Question::Head(_) = case.question {
            let reply = self.client.ask("HEAD", &path, &headers).await;
            let status = if served { StatusCode::OK } else { StatusCode::NOT_FOUND };
            return match reply.status == status && reply.body.is_empty() {
                true if served => Ok(Kind::NoRow),
                true => Ok(Kind::NoEntity),
                false => Err(format!("{reply:?} for HEAD {path}")),
            };
        }
        if !served {
            let reply = self.client.get(&path, &headers).await;
            return refused(&reply, false);
        }
        let found = pages(&self.client, &path, &headers, page, expected.len()).await?;
        if found != expected.join(",") {
            return Err(format!(
                "{path} gives {found}\nand the model {}\n{}",
                expected.join(","),
                sql(&visible)
            ));
        }
        Ok(match (page, expected.is_empty()) {
            (Some(_), false) => Kind::Rows,
            (Some(_), true) => Kind::NoRow,
            (None, false) => Kind::OneRow,
            (None, true) => Kind::HiddenRow,
        })
    }
}

/// The answer to a question that names what is not there for the key.
fn refused(reply: &Reply, served: bool) -> Result<Kind, Difference> {
    let (status, code, kind) = match served {
        true => (StatusCode::BAD_REQUEST, "UnknownField", Kind::UnknownField),
        false => (StatusCode::NOT_FOUND, "EntityNotFound", Kind::NoEntity),
    };
    match reply.status == status && reply.json()["error"]["code"] == code {
        true => Ok(kind),
        false => Err(format!("{reply:?}\nand not {status} {code}")),
    }
}

/// The rows of every page, as they were written. `n_all`: how many there are to be.
async fn pages(
    client: &Client,
    path: &str,
    headers: &[(&str, &str)],
    rows: Option<&Rows>,
    n_all: usize,
) -> Result<String, Difference> {
    let (mut found, mut url) = (Vec::new(), path.to_owned());
    loop {
        let reply = client.get(&url, headers).await;
        // Addresses hold no bracket, so the last one ends the rows.
        let body = reply.body.strip_prefix("{\"value\":[").filter(|_| reply.status == StatusCode::OK);
        let Some((page, end)) = body.and_then(|body| body.rsplit_once(']')) else {
            return Err(format!("{reply:?} for {url}"));
        };
        let end: Value = serde_json::from_str(&format!("{{\"value\":[]{end}")).expect("a part of JSON");
        let count = rows.filter(|rows| rows.count).map(|_| json!(n_all));
        if end.get("count") != count.as_ref() {
            return Err(format!("{end} and not {count:?} for {url}"));
        }
        if !page.is_empty() {
            found.push(page.to_owned());
        }
        let Some(next) = end["nextLink"].as_str() else { return Ok(found.join(",")) };
        let n_rows = reply.rows().len();
        match rows {
            Some(rows) if n_rows == rows.page() && found.len() < 100 => next.clone_into(&mut url),
            _ => return Err(format!("a page of {n_rows} rows and a next one: {url}")),
        }
    }
}

/// What the list of entities holds, by the entities' names.
fn listed(drawn: &Drawn, key: &Key, base: &str) -> Vec<Value> {
    let mut entities: Vec<(usize, &Entity)> = drawn.entities.iter().enumerate().collect();
    entities.sort_by_key(|(_, entity)| entity.name.as_str());
    let one = |(i, entity): (usize, &Entity)| {
        let fields = drawn.readable(key, i);
        let relation = drawn.relation(entity);
        let fields: Vec<&str> = fields.iter().map(|column| entity.exposed(column.name)).collect();
        let names: Vec<&str> = relation.key.iter().map(|name| entity.exposed(name)).collect();
        let key_fields: Vec<&str> = names.into_iter().filter(|name| fields.contains(name)).collect();
        let kind = if relation.name.starts_with('v') { "View" } else { "Table" };
        let url = format!("{base}/{}", entity.name);
        (entity.rest && !fields.is_empty()).then(
            || json!({"name": entity.name, "kind": kind, "url": url, "keyFields": key_fields, "fields": fields}),
        )
    };
    entities.into_iter().filter_map(one).collect()
}

/// The columns of every relation that a role may read, `relation.column`.
fn held(role: &str) -> String {
    format!(
        "select c.relname || '.' || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid \
         where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'v') and 0 < a.attnum \
         and has_column_privilege('{role}', c.oid, a.attnum, 'select')"
    )
}

/// As the manifest has them.
fn meant(drawn: &Drawn, key: &Key) -> Vec<String> {
    let all = |(i, relation): (usize, &Relation)| {
        let name = relation.name.clone();
        drawn.reached(key, i).into_iter().map(move |column| format!("{name}.{column}"))
    };
    let mut meant: Vec<String> = drawn.relations.iter().enumerate().flat_map(all).collect();
    meant.sort();
    meant
}

pub(super) fn parts(entity: &Entity, relation: &Relation, values: &[Option<String>]) -> String {
    let value = |value: &Option<String>| escape(value.as_deref().unwrap_or("no such value"));
    let pairs = relation.key.iter().zip(values);
    pairs.map(|(name, text)| format!("/{}/{}", entity.exposed(name), value(text))).collect()
}

pub(super) fn named(relation: &Relation, values: &[Option<String>]) -> String {
    let one = |(name, value): (&&str, &Option<String>)| {
        let value = value.as_deref().unwrap_or("no such value");
        format!("r.{name}::text = '{}'", value.replace('\'', "''"))
    };
    let all: Vec<String> = relation.key.iter().zip(values).map(one).collect();
    format!("where {}", all.join(" and "))
}

/// Columns of `r` under the names of the entity, so that `to_json` writes them as the contract says.
pub(super) fn shown(entity: &Entity, columns: &[&Column]) -> String {
    let shown = |column: &&Column| format!("{} as \"{}\"", json_of(column), entity.exposed(column.name));
    columns.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// A column so that `to_json` writes it as the contract says.
fn json_of(column: &Column) -> String {
    let name = format!("r.{}", column.name);
    match column.writing {
        Writing::Bytes => format!("replace(encode({name}, 'base64'), E'\\n', '')"),
        _ if column.ty == "timestamptz" => format!("replace(to_json({name}) #>> '{{}}', '+00:00', 'Z')"),
        _ => name,
    }
}

/// A query of the key's role, as a client of the database would ask it.
async fn as_role(connection: &mut PgConnection, role: &str, sql: &str) -> Result<Vec<String>, Difference> {
    // One string is one transaction, so the role ends with it, whatever happens.
    let answered = texts(connection, &format!("set local role \"{role}\"; {sql}")).await;
    answered.map_err(|error| format!("{role}: {error}: {sql}"))
}

#[expect(clippy::disallowed_methods, reason = "the text is the test's own; no request reaches it")]
pub(crate) async fn texts(connection: &mut PgConnection, sql: &str) -> Result<Vec<String>, sqlx::Error> {
    let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).fetch_all(connection).await?;
    rows.iter().map(|row| row.try_get::<Option<String>, _>(0).map(Option::unwrap_or_default)).collect()
}
