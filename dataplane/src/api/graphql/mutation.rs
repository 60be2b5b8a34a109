//! Mutations: each field is a write or a call as over REST, one after another. What one has written stays, whatever becomes of the
//! next.

use std::collections::HashMap;

use async_graphql::Pos;
use async_graphql::parser::types::SelectionSet;
use rowgate_core::name::EntityName;
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::catalog::Link;
use rowgate_sql::catalog::{Entity, Protocol, Scope};
use rowgate_sql::compile;
use rowgate_sql::query::{Document, DocumentMember, Form, ToMany};
use rowgate_sql::resolve::{Precondition, UpsertMode};
use rowgate_sql::rest::{self, body};
use serde_json::value::RawValue;

use super::document::selection::{Selected, collect};
use super::document::value::{Value, json_text};
use super::error::GraphQlError;
use super::lower::text_of;
use super::query::{self, Prepared};
use super::schema::mutations::Verb;
use super::wording::{self, WORDING};
use super::{Answer, is_of_http};
use crate::app::App;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::nested;
use crate::execute::post::{self, Posted, Statement};
use crate::execute::retry::{self, Attempt, RetryReason};
use crate::execute::write::problem as write_problem;
use crate::execute::write::{self, Reserve};

/// Runs the fields of a mutation in their order.
pub(super) async fn run(
    caller: &Caller,
    app: &App,
    prepared: Prepared,
    reserve: &Reserve<'_>,
) -> Result<Answer, Problem> {
    let roots = match prepared.roots() {
        Ok(roots) => roots,
        Err(error) => return Ok(Answer::refused(vec![error])),
    };
    let (introspected, mut errors) = query::introspected(&prepared, &roots).await;
    let mut data = String::from("{");
    let mut has_run = false;
    for root in &roots {
        data.push_str(if data.len() == 1 { "" } else { "," });
        data.push_str(&json_text(root.key));
        data.push(':');
        let Some((verb, entity)) = prepared.schema.mutation(root.name) else {
            let json = match root.name {
                "__typename" => "\"Mutation\"",
                _ => introspected.get(root.key).map_or("null", String::as_str),
            };
            data.push_str(json);
            continue;
        };
        let field = Mutation { caller, app, prepared: &prepared, reserve, entity, root };
        match field.run(*verb).await {
            Ok(json) => data.push_str(&json),
            // nothing was written yet, so that the whole request can be sent again
            Err(error) if is_of_http(error.problem.code) && !has_run => return Err(error.into_problem()),
            Err(error) => {
                data.push_str("null");
                errors.push(error);
            }
        }
        has_run = true;
    }
    data.push('}');
    Ok(Answer { data: Some(data.into_bytes()), errors })
}

struct Mutation<'a> {
    caller: &'a Caller,
    app: &'a App,
    prepared: &'a Prepared,
    reserve: &'a Reserve<'a>,
    entity: &'a EntityName,
    root: &'a Selected<'a>,
}

type Run<T> = Result<T, GraphQlError>;

impl Mutation<'_> {
    async fn run(&self, verb: Verb) -> Run<String> {
        let context = self.caller.reauthenticate().await?;
        let lowering = self.prepared.lowering(self.app, &context);
        let given = lowering.given("Mutation", self.root)?;
        let mut arguments: HashMap<String, Value> = given.into_iter().collect();
        let entity = context.snapshot.catalog.entities.get(self.entity).cloned();
        let entity = entity.ok_or_else(|| self.error(Problem::entity_not_found()))?;
        match verb {
            Verb::Create => {
                let item = arguments.remove("item").unwrap_or(Value::Null);
                let row = self.post(&item.json()).await?;
                self.row(&entity, &row).await
            }
            Verb::CreateMany => {
                let items = arguments.remove("items").unwrap_or(Value::Null);
                let rows = self.post(&items.json()).await?;
                self.rows(&entity, &rows).await
            }
            Verb::Update => {
                let item = arguments.remove("item").unwrap_or(Value::Null);
                let row = self.upsert(&key(&entity, &arguments), &item, &Precondition::Present).await?;
                self.row(&entity, &row).await
            }
            Verb::Upsert => {
                let Some(Value::Object(fields)) = arguments.remove("item") else {
                    return Err(self.error(Problem::internal()));
                };
                let fields: HashMap<String, Value> = fields.into_iter().collect();
                let key = key(&entity, &fields);
                let names: Vec<&String> = key.iter().map(|(name, _)| name).collect();
                let rest = fields.into_iter().filter(|(name, _)| !names.contains(&name)).collect();
                let row = self.upsert(&key, &Value::Object(rest), &Precondition::Either).await?;
                self.row(&entity, &row).await
            }
            Verb::Delete => {
                self.delete(&key(&entity, &arguments)).await?;
                self.key_of(&entity, &arguments)
            }
            Verb::Call => {
                let rows = self.post(&Value::Object(arguments.into_iter().collect()).json()).await?;
                match entity.routine.as_ref().is_some_and(|routine| !routine.returns.outputs().is_empty()) {
                    true => self.projected(&rows, self.prepared.schema.type_of(self.entity)),
                    false => Ok("true".to_owned()),
                }
            }
        }
    }

    /// Rows made, or a call: what they give, as objects joined by commas.
    async fn post(&self, json: &str) -> Run<Vec<u8>> {
        let posted = post::run(self.caller, &WORDING, self.reserve, |context| {
            let (catalog, scope) = (&context.snapshot.catalog, scope(context));
            let is_called = catalog.entities.get(self.entity).is_some_and(|found| found.routine.is_some());
            if is_called {
                let call =
                    rest::call(catalog, &scope, self.entity, body::parse(json.as_bytes()).map(Some), true)?;
                return Ok(Statement::Call(compile::call(&call)));
            }
            let insert = rest::insert(catalog, &scope, self.entity, body::parse(json.as_bytes()), true)?;
            Ok(Statement::Write(compile::insert(&insert)))
        });
        match posted.await.map_err(|problem| self.error(problem))? {
            Posted::Called(json) => Ok(json),
            Posted::Written(written) if written.n_affected == 0 => {
                Err(self.error(write_problem::passed_over()))
            }
            Posted::Written(written) if written.is_left_out => Err(self.error(left_out())),
            Posted::Written(written) => Ok(written.json),
        }
    }

    /// The row of `key` changed, or made where that is wanted.
    async fn upsert(
        &self,
        key: &[(String, String)],
        item: &Value,
        precondition: &Precondition,
    ) -> Run<Vec<u8>> {
        let json = item.json();
        let upserted = write::upsert(self.caller, &WORDING, self.reserve, |context| {
            let (body, wish) = (body::parse(json.as_bytes()), (UpsertMode::Merge, precondition, true));
            rest::upsert(&context.snapshot.catalog, &scope(context), self.entity, key, body, wish)
        });
        let (written, _) = upserted.await.map_err(|problem| self.error(problem))?;
        if written.is_left_out {
            return Err(self.error(left_out()));
        }
        Ok(written.json)
    }

    async fn delete(&self, key: &[(String, String)]) -> Run<()> {
        let deleted = write::delete(self.caller, &WORDING, |context| {
            rest::delete(&context.snapshot.catalog, &scope(context), self.entity, key)
        });
        deleted.await.map_err(|problem| self.error(problem))
    }

    /// What the field gives of a row that was written.
    async fn row(&self, entity: &Entity, row: &[u8]) -> Run<String> {
        // without a field that may be read a row is empty braces, and the field is a boolean
        if matches!(row, b"{}" | b"") {
            return Ok(if self.root.sets.iter().all(|set| set.items.is_empty()) { "true" } else { "null" }
                .to_owned());
        }
        if self.has_fields_only(entity)? {
            return self.object(row, self.prepared.schema.type_of(self.entity));
        }
        let Some(key) = key_of_row(entity, row) else {
            let what = "the row was written, and its key is not known, so that nothing beside its fields can be read";
            return Err(self.error(Problem::new(Code::Forbidden, what)));
        };
        let context = self.caller.reauthenticate().await?;
        let after = ReadRow { mutation: self, key: &key, error: parking_lot::Mutex::default() };
        let read = retry::run(self.caller, context, &after).await;
        read.map_err(|problem| {
            let known = after.error.into_inner();
            known.unwrap_or_else(|| self.error(problem))
        })
    }

    async fn rows(&self, entity: &Entity, rows: &[u8]) -> Run<String> {
        let list = [b"[", rows, b"]"].concat();
        let items: Vec<&RawValue> =
            serde_json::from_slice(&list).map_err(|_| self.error(Problem::internal()))?;
        let mut out = String::from("[");
        for item in items {
            out.push_str(if out.len() == 1 { "" } else { "," });
            out.push_str(&self.row(entity, item.get().as_bytes()).await?);
        }
        out.push(']');
        match rows {
            b"" => Ok("true".to_owned()),
            _ => Ok(out),
        }
    }

    /// Whether the row that was given back has all that is asked.
    fn has_fields_only(&self, entity: &Entity) -> Run<bool> {
        let document = &self.prepared.operation.document;
        let asked = collect(document, &self.root.sets, &self.prepared.variables)?;
        let is_field =
            |name: &str| name == "__typename" || entity.fields.iter().any(|field| field.name == name);
        Ok(asked.iter().all(|asked| is_field(asked.name)))
    }

    /// The members that are asked for of each of the objects, which are joined by commas.
    fn projected(&self, rows: &[u8], ty: &str) -> Run<String> {
        let list = [b"[", rows, b"]"].concat();
        let items: Vec<&RawValue> =
            serde_json::from_slice(&list).map_err(|_| self.error(Problem::internal()))?;
        let objects: Vec<String> =
            items.iter().map(|item| self.object(item.get().as_bytes(), ty)).collect::<Run<_>>()?;
        Ok(format!("[{}]", objects.join(",")))
    }

    /// The members that are asked for of an object of type `ty`.
    fn object(&self, row: &[u8], ty: &str) -> Run<String> {
        let row: HashMap<String, &RawValue> =
            serde_json::from_slice(row).map_err(|_| self.error(Problem::internal()))?;
        self.members(ty, &|name| row.get(name).map(|value| value.get().to_owned()))
    }

    fn key_of(&self, entity: &Entity, arguments: &HashMap<String, Value>) -> Run<String> {
        let ty = format!("{}Key", self.prepared.schema.type_of(self.entity));
        let is_key = |name: &str| entity.key.iter().any(|at| entity.fields[*at].name == name);
        self.members(&ty, &|name| arguments.get(name).filter(|_| is_key(name)).map(Value::json))
    }

    fn members(&self, ty: &str, value: &dyn Fn(&str) -> Option<String>) -> Run<String> {
        let document = &self.prepared.operation.document;
        let mut out = String::from("{");
        for asked in collect(document, &self.root.sets, &self.prepared.variables)? {
            out.push_str(if out.len() == 1 { "" } else { "," });
            out.push_str(&json_text(asked.key));
            out.push(':');
            match asked.name {
                "__typename" => out.push_str(&json_text(ty)),
                name => out.push_str(value(name).as_deref().unwrap_or("null")),
            }
        }
        out.push('}');
        Ok(out)
    }

    fn error(&self, problem: Problem) -> GraphQlError {
        let error = GraphQlError::from(wording::of_graphql(problem)).at(self.root.pos);
        error.within(&[self.root.key.to_owned()])
    }

    fn asked(&self) -> (&[&SelectionSet], Pos) {
        (&self.root.sets, self.root.pos)
    }
}

/// Reads a row that was written, with what stands within it.
struct ReadRow<'a> {
    mutation: &'a Mutation<'a>,
    key: &'a [(String, String)],
    error: parking_lot::Mutex<Option<GraphQlError>>,
}

impl Attempt for ReadRow<'_> {
    type Answer = String;

    async fn attempt(
        &self,
        caller: &Caller,
        context: &KeyContext,
        is_last: bool,
    ) -> Result<String, RetryReason> {
        let Mutation { app, prepared, entity, root, .. } = self.mutation;
        let path = [root.key.to_owned()];
        let mut lowering = prepared.lowering(app, context);
        let query = lowering.row_of(entity, self.key, self.mutation.asked(), &path);
        let query = query.map_err(|error| {
            let problem = error.problem.clone();
            *self.error.lock() = Some(error);
            RetryReason::Refused(problem)
        })?;
        // it was written, so that it is read whatever it costs, and the next request waits
        let _too_early = caller.tenant.admit_cost(&caller.credential, context, lowering.cost()).await;
        let row = ToMany { link: Link::All, lists: vec![query], form: Form::Row { name: "row".to_owned() } };
        let document = Document { members: vec![DocumentMember::Read(Box::new(row))] };
        let page = nested::page(caller, context, (&app.cursor_key, &WORDING), &document, is_last).await?;
        let page = page.ok_or_else(|| RetryReason::Final(Problem::internal()))?;
        let text = String::from_utf8(page.json).map_err(|_| RetryReason::Final(Problem::internal()))?;
        // an object with one member
        let row = text.strip_prefix("{\"row\":").and_then(|text| text.strip_suffix('}'));
        row.map(str::to_owned).ok_or_else(|| RetryReason::Final(Problem::internal()))
    }
}

fn scope(context: &KeyContext) -> Scope {
    context.snapshot.scope(&context.key).on(Protocol::GraphQl)
}

/// The fields of the key with their values, as a path of REST has them.
fn key(entity: &Entity, values: &HashMap<String, Value>) -> Vec<(String, String)> {
    let value = |at: &usize| {
        let name = &entity.fields[*at].name;
        values.get(name).map(|value| (name.clone(), text_of(value)))
    };
    entity.key.iter().filter_map(value).collect()
}

/// The same of a row that was given back; `None`: it does not hold them all.
fn key_of_row(entity: &Entity, row: &[u8]) -> Option<Vec<(String, String)>> {
    let row: HashMap<String, &RawValue> = serde_json::from_slice(row).ok()?;
    let value = |at: &usize| {
        let name = &entity.fields[*at].name;
        let value = Value::of_json(row.get(name)?.get())?;
        (value != Value::Null).then(|| (name.clone(), text_of(&value)))
    };
    entity.key.iter().map(value).collect()
}

fn left_out() -> Problem {
    Problem::new(
        Code::TooLarge,
        "the rows were written, and are longer than an answer holds; read them with a query",
    )
}
