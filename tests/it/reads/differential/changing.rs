//! One write three ways: over HTTP, as the key's role in plain SQL, and as the model has it. All three have to agree on
//! what becomes of the table. Over views there is no model: the two others are compared.

use sqlx::PgConnection;

use super::comparing::{Difference, Tenant, named, parts, texts};
use super::model::Who;
use super::running;
use super::world::{Body, Security};
use super::writing::{Verb, Write, needed};

/// What came of a write, and should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Done(&'static str),
    /// Policies do not let the key reach the row.
    NotReached,
    /// A policy refuses the row as it would be.
    Checked,
    /// The key has no such right, or the relation takes no such write.
    NoRight,
}

impl Tenant {
    pub(super) async fn write(&mut self, case: &Write) -> Result<Outcome, Difference> {
        let (secret, role) = self.secrets[case.key].clone();
        let (key, entity) = (&self.drawn.keys[case.key], &self.drawn.entities[case.entity]);
        let relation = self.drawn.relation(entity);
        let who = Who { key, role: &role };
        let all = running::keys(&mut self.model, &relation.key, &self.drawn.stored(entity.relation)).await;
        let Some(row) = all.get(case.nth % all.len().max(1)) else { return Ok(Outcome::NotReached) };
        let named = named(relation, row);
        let (table, action) = (self.drawn.base(entity.relation), case.verb.action());
        let dump = format!(
            "select coalesce(string_agg(r::text, e'\\n' order by r::text), '') from app.{} r",
            table.name
        );
        let before = state(&mut self.model, &dump).await;

        let (sent, case) = (case, &case.meant(relation));
        let shown = self.drawn.visible(entity.relation, who);
        let is_read = texts(&mut self.model, &format!("select count(*)::text from {shown} r {named}")).await;
        let is_read = is_read.expect("the superuser reads everything").concat() != "0";
        let readable = self.drawn.readable(key, case.entity);
        let sql = case.sql(relation, &named, &readable);
        let (by_sql, after) = done(&mut self.roles, Some(&role), &sql, &dump).await;
        let http = self.drawn.settable(key, case.entity, action);
        let is_served =
            entity.rest && has(&http, case, relation) && (case.verb != Verb::Delete || !http.is_empty());
        let mut expected = if is_served { by_sql } else { Outcome::NoRight };
        if let Body::Table { security, .. } = &relation.body {
            let reads_back = !case.is_minimal && !readable.is_empty();
            let meant = self.meant(&table.name, security, who, case, &named, reads_back);
            let reach = self.drawn.reach(key, entity.relation, action);
            let by_role = match has(&reach, case, relation) && !reach.is_empty() {
                true => self::meant(&mut self.model, &meant, case.verb).await?,
                false => Outcome::NoRight,
            };
            if by_role != by_sql {
                return Err(format!("{role} by SQL {by_sql:?} and the model {by_role:?}\n{sql}\n{meant:?}"));
            }
            if let Outcome::Done(_) = by_sql {
                let (_, meant) = done(&mut self.model, None, &sql, &dump).await;
                if meant != after {
                    return Err(format!("{role} by SQL leaves\n{after}\nand the superuser\n{meant}\n{sql}"));
                }
            }
            expected = if is_served { by_role } else { Outcome::NoRight };
        }

        let mut url = format!("{}/auth/{}/api/{}", self.url, self.drawn.slug, entity.name);
        if case.verb != Verb::Post {
            url += &parts(entity, relation, row);
        }
        let mut headers = vec![("x-api-key", secret.as_str()), ("content-type", "application/json")];
        if case.is_minimal {
            headers.push(("prefer", "return=minimal"));
        }
        if let Verb::Patch | Verb::Put = case.verb {
            headers.push(("if-match", "*"));
        }
        let reply = self.client.send(case.verb.method(), &url, &headers, &sent.body(entity)).await;
        let found = state(&mut self.model, &dump).await;
        let statuses: &[u16] = match (expected, case.verb, case.is_minimal) {
            (Outcome::Done(_), Verb::Delete, _) | (Outcome::Done(_), _, true) => &[204],
            (Outcome::Done(_), Verb::Post, _) => &[201],
            (Outcome::Done(_), Verb::Patch | Verb::Put, _) => &[200],
            // a row that is read is known to be there
            (Outcome::NotReached, ..) if is_read => &[403],
            (Outcome::NotReached, ..) => &[404],
            (Outcome::Checked, ..) => &[403],
            (Outcome::NoRight, ..) => &[400, 403, 404, 405, 422],
        };
        let wanted = if let Outcome::Done(_) = expected { &after } else { &before };
        match statuses.contains(&reply.status.as_u16()) && found == *wanted {
            true => Ok(expected),
            false => Err(format!(
                "{reply:?}\nand not {statuses:?} for {} {url} {}\n{sql}\nthe table is\n{found}\nand not\n{wanted}",
                case.verb.method(),
                sent.body(entity)
            )),
        }
    }

    /// Two conditions on the row of a table: it is reached; it may be as it becomes.
    fn meant(
        &self,
        table: &str,
        security: &Security,
        who: Who<'_>,
        case: &Write,
        named: &str,
        reads_back: bool,
    ) -> [String; 2] {
        let drawn = &self.drawn;
        let condition = |action: &str| drawn.condition(table, security, who, action);
        let (read, write) = (condition("read"), condition(case.verb.action()));
        let old = format!("(select * from app.{table} r {named}) {table}");
        let json = case.row();
        let count =
            |from: &str, conditions: &str| format!("select count(*)::text from {from} where {conditions}");
        let both = format!("{read} and {write}");
        match case.verb {
            Verb::Post => {
                let row =
                    format!("(select * from jsonb_populate_record(null::app.{table}, '{json}')) {table}");
                [count("(select) one", "true"), count(&row, if reads_back { &both } else { &write })]
            }
            Verb::Patch | Verb::Put => {
                let row = format!(
                    "(select (jsonb_populate_record(r, '{json}')).* from app.{table} r {named}) {table}"
                );
                [count(&old, &both), count(&row, &both)]
            }
            Verb::Delete => [count(&old, &both), count(&old, "true")],
        }
    }
}

async fn meant(
    model: &mut PgConnection,
    [reached, checked]: &[String; 2],
    verb: Verb,
) -> Result<Outcome, String> {
    let holds = async |model: &mut PgConnection, sql: &str| {
        texts(model, sql).await.map(|found| found == ["1"]).map_err(|error| format!("{error}: {sql}"))
    };
    if !holds(model, reached).await? {
        return Ok(Outcome::NotReached);
    }
    Ok(if holds(model, checked).await? { Outcome::Done(verb.action()) } else { Outcome::Checked })
}

/// Whether all that is sent may be set, and all that a new row needs is.
fn has(columns: &std::collections::BTreeSet<&str>, case: &Write, relation: &super::world::Relation) -> bool {
    let is_whole = case.verb != Verb::Post || needed(relation).all(|it| columns.contains(it.name));
    is_whole && case.values.iter().all(|(column, _)| columns.contains(column.name))
}

async fn state(connection: &mut PgConnection, dump: &str) -> String {
    texts(connection, dump).await.expect("the superuser reads everything").concat()
}

/// What the statement does when a client of the database sends it as the role, or the superuser, and what the table holds
/// then. It is undone.
async fn done(connection: &mut PgConnection, role: Option<&str>, sql: &str, dump: &str) -> (Outcome, String) {
    let role = role.map_or("none".to_owned(), |role| format!("\"{role}\""));
    run(connection, &format!("begin; set local role {role}")).await.expect("the superuser is every role");
    let outcome = match run(connection, sql).await {
        Ok(0) => Outcome::NotReached,
        Ok(_) if sql.starts_with("insert") => Outcome::Done("create"),
        Ok(_) if sql.starts_with("update") => Outcome::Done("update"),
        Ok(_) => Outcome::Done("delete"),
        Err(error) => {
            let told = error.to_string();
            if told.contains("row-level security") { Outcome::Checked } else { Outcome::NoRight }
        }
    };
    let after = match outcome {
        Outcome::Done(_) => {
            run(connection, "reset role").await.expect("anybody may");
            state(connection, dump).await
        }
        _ => String::new(),
    };
    run(connection, "rollback").await.expect("anybody may");
    (outcome, after)
}

#[expect(clippy::disallowed_methods, reason = "the text is the test's own; no request reaches it")]
async fn run(connection: &mut PgConnection, sql: &str) -> Result<u64, sqlx::Error> {
    use sqlx::Executor as _;
    let done = connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))).await?;
    Ok(done.rows_affected())
}
