//! A request from its text to its answer, where it reads; a mutation as far as it is the same.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_graphql::parser::types::OperationType;
use async_graphql::{Request, Response};
use parking_lot::Mutex;
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::catalog::{Protocol, Scope};
use rowgate_sql::resolve::Cursors;
use rowgate_sql::rest;

use super::document::names::names;
use super::document::selection::{Selected, collect};
use super::document::value::Variables;
use super::document::{self, Operation};
use super::error::GraphQlError;
use super::lower::Lowering;
use super::request::GraphQlRequest;
use super::schema::{Introspects, Schema};
use super::wording::{self, WORDING};
use super::{Answer, is_of_http, not_run};
use crate::app::App;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::nested;
use crate::execute::retry::{self, Attempt, RetryReason};

/// An operation that is valid in a schema.
pub(super) struct Prepared {
    pub(super) schema: Arc<Schema>,
    pub(super) operation: Operation,
    pub(super) variables: Variables,
}

pub(super) enum Outcome {
    Answered(Answer),
    Mutates(Prepared),
    Subscribes(Prepared),
}

/// What a transport can carry beside queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Carries {
    pub(super) mutations: bool,
    pub(super) subscriptions: bool,
}

/// Runs a query. Another operation is given back when nothing is wrong with it.
pub(super) async fn run(
    caller: &Caller,
    app: &App,
    context: KeyContext,
    request: Result<GraphQlRequest, Problem>,
    carries: Carries,
) -> Result<Outcome, Problem> {
    let read = Read { app, request, carries, is_counted: AtomicBool::new(false), errors: Mutex::default() };
    let outcome = retry::run(caller, context, &read).await;
    let errors = read.errors.into_inner();
    match outcome {
        Ok(outcome) => Ok(outcome),
        // said when the database has confirmed the key
        Err(problem) if !errors.is_empty() && !is_of_http(problem.code) => {
            Ok(Outcome::Answered(Answer::refused(errors)))
        }
        Err(problem) if is_of_http(problem.code) => Err(problem),
        Err(problem) => {
            let errors = vec![GraphQlError::from(wording::of_graphql(problem))];
            Ok(Outcome::Answered(Answer { data: Some(b"null".to_vec()), errors }))
        }
    }
}

struct Read<'a> {
    app: &'a App,
    request: Result<GraphQlRequest, Problem>,
    carries: Carries,
    /// Its cost was counted, in this try or in one before: who overdraws the limit still gets this answer.
    is_counted: AtomicBool,
    /// What was wrong with the request in the last try: the problem beside them says only that something was.
    errors: Mutex<Vec<GraphQlError>>,
}

impl Attempt for Read<'_> {
    type Answer = Outcome;

    async fn attempt(
        &self,
        caller: &Caller,
        context: &KeyContext,
        is_last: bool,
    ) -> Result<Outcome, RetryReason> {
        self.errors.lock().clear();
        let (tenant, set_role) = (&caller.tenant.id, context.key.set_role.as_ref());
        let scope = context.snapshot.scope(&context.key);
        let schema = self.app.schemas.get(tenant, &context.snapshot, set_role, &scope).await;
        let schema = schema.map_err(RetryReason::Final)?;
        let request = self
            .request
            .as_ref()
            .map_err(|problem| self.refused(vec![GraphQlError::from(problem.clone()).of_request()]))?;
        let text = self.app.persisted.text(tenant, request).map_err(|error| self.refused(vec![error]))?;
        let operation = schema.operation(&text, request.operation_name.as_deref()).await;
        let refused = |errors| match is_away(context, &scope, &text, &request.variables) {
            true => RetryReason::Refused(rest::absent()),
            false => self.refused(errors),
        };
        let operation = operation.map_err(refused)?;
        if let Some(error) = not_run(operation.ty(), self.carries) {
            return Err(match error.problem.code {
                Code::MethodNotAllowed => RetryReason::Refused(error.into_problem()),
                _ => self.refused(vec![error]),
            });
        }
        let variables = operation.variables(schema.registry(), &request.variables);
        let variables = variables.map_err(|error| refused(vec![error]))?;
        let prepared = Prepared { schema, operation, variables };
        match prepared.operation.ty() {
            OperationType::Mutation => {
                // what follows asks the database, unless there is nothing of it
                let roots = prepared.roots().map_err(|error| self.refused(vec![error]))?;
                let reads = roots.iter().any(|root| !root.name.starts_with("__"));
                match reads {
                    // what its rows cost is counted when they are read
                    true => {
                        let admitted = caller.tenant.admit_cost(&caller.credential, context, 0).await;
                        admitted.map_err(RetryReason::Final)?;
                    }
                    false => confirm(caller, context).await?,
                }
                Ok(Outcome::Mutates(prepared))
            }
            OperationType::Subscription => {
                prepared.roots().map_err(|error| self.refused(vec![error]))?;
                confirm(caller, context).await?;
                Ok(Outcome::Subscribes(prepared))
            }
            OperationType::Query => {
                self.query(caller, context, &prepared, is_last).await.map(Outcome::Answered)
            }
        }
    }
}

impl Read<'_> {
    async fn query(
        &self,
        caller: &Caller,
        context: &KeyContext,
        prepared: &Prepared,
        is_last: bool,
    ) -> Result<Answer, RetryReason> {
        let roots = prepared.roots().map_err(|error| self.refused(vec![error]))?;
        let (introspected, errors) = introspected(prepared, &roots).await;
        if !errors.is_empty() {
            return Err(self.refused(errors));
        }
        let mut lowering = prepared.lowering(self.app, context);
        let document = lowering.query(&roots, &|key| introspected.get(key).cloned());
        let document = document.map_err(|error| self.refused(vec![error]))?;
        if !self.is_counted.load(Ordering::Relaxed) {
            let admitted = caller.tenant.admit_cost(&caller.credential, context, lowering.cost()).await;
            admitted.map_err(RetryReason::Final)?;
            self.is_counted.store(true, Ordering::Relaxed);
        }
        let said = (&self.app.cursor_key, &WORDING);
        let page = nested::page(caller, context, said, &document, is_last).await?;
        let data = match page {
            Some(page) => page.json,
            None => {
                confirm(caller, context).await?;
                let _first = caller.trace.rows.set(0);
                constants(&document).into_bytes()
            }
        };
        Ok(Answer { data: Some(data), errors: Vec::new() })
    }

    /// The request is refused, unless a newer catalog or key record lets it pass.
    fn refused(&self, errors: Vec<GraphQlError>) -> RetryReason {
        *self.errors.lock() = errors;
        RetryReason::Refused(Problem::new(Code::BadRequest, "the request is refused"))
    }
}

/// Whether a request that fits no schema names something that the key has a right on and that does not exist now. Then the error
/// would be gone with the next look, and the answer is that of REST.
fn is_away(context: &KeyContext, scope: &Scope, text: &str, variables: &Variables) -> bool {
    let away = context.snapshot.catalog.names_away(&scope.on(Protocol::GraphQl));
    if away.is_empty() {
        return false;
    }
    let Ok(document) = document::parse(text) else { return false };
    names(&document, variables).iter().any(|name| away.contains(name))
}

/// Goes on only when the database has said in this request that the key lives: for an answer without a statement.
async fn confirm(caller: &Caller, context: &KeyContext) -> Result<(), RetryReason> {
    if context.fresh {
        return Ok(());
    }
    let now = caller.tenant.authenticate_fresh(&caller.credential).await.map_err(RetryReason::Final)?;
    match now.is_same(context) {
        true => Ok(()),
        false => Err(RetryReason::Behind),
    }
}

impl Prepared {
    /// The members of the operation's object.
    pub(super) fn roots(&self) -> Result<Vec<Selected<'_>>, GraphQlError> {
        let set = &self.operation.definition().node.selection_set.node;
        collect(&self.operation.document, &[set], &self.variables)
    }

    pub(super) fn lowering<'a>(&'a self, app: &'a App, context: &'a KeyContext) -> Lowering<'a> {
        let cursors = Cursors { key: &app.cursor_key, caller: context.key.id.as_str() };
        Lowering::new(&self.schema, &context.snapshot.catalog, cursors, &self.operation, &self.variables)
    }
}

/// What async-graphql answers to introspection, by key.
pub(super) async fn introspected(
    prepared: &Prepared,
    roots: &[Selected<'_>],
) -> (HashMap<String, String>, Vec<GraphQlError>) {
    let asked: Vec<&str> =
        roots.iter().filter(|root| matches!(root.name, "__schema" | "__type")).map(|root| root.key).collect();
    if asked.is_empty() {
        return (HashMap::new(), Vec::new());
    }
    let mut request = Request::new("").data(Introspects);
    request.set_parsed_query((*prepared.operation.document).clone());
    request.operation_name.clone_from(&prepared.operation.name);
    let variables = prepared.variables.iter().map(|(name, value)| {
        let value = serde_json::from_str::<serde_json::Value>(&value.json()).unwrap_or_default();
        (name.clone(), value)
    });
    request = request
        .variables(async_graphql::Variables::from_json(variables.collect::<serde_json::Map<_, _>>().into()));
    let executable = prepared.schema.executable.clone();
    // off the threads that answer requests: that of a large schema takes a good part of a second
    let handle = tokio::runtime::Handle::current();
    let answered = tokio::task::spawn_blocking(move || handle.block_on(executable.execute(request)));
    let Ok(Response { data, errors, .. }) = answered.await else {
        return (HashMap::new(), vec![GraphQlError::from(Problem::internal())]);
    };
    let async_graphql::Value::Object(members) = data else {
        return (HashMap::new(), errors.into_iter().map(GraphQlError::from).collect());
    };
    let members = members.into_iter().filter(|(key, _)| asked.contains(&key.as_str()));
    let text = |value| serde_json::to_string(&value).unwrap_or_else(|_| "null".to_owned());
    (members.map(|(key, value)| (key.to_string(), text(value))).collect(), Vec::new())
}

/// An answer that is made without a statement.
fn constants(document: &rowgate_sql::query::Document) -> String {
    use rowgate_sql::query::DocumentMember;
    let mut out = String::from("{");
    for member in &document.members {
        if let DocumentMember::Constant { name, json } = member {
            out.push_str(if out.len() == 1 { "" } else { "," });
            out.push_str(&document::value::json_text(name));
            out.push(':');
            out.push_str(json);
        }
    }
    out.push('}');
    out
}
