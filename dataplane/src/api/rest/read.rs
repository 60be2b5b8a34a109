//! `/auth/{tenant}/api`: which entities there are, their rows, and one row.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse as _, Response};
use rowgate_core::name::EntityName;
use rowgate_sql::catalog::{Entity, Mode, Rights};
use rowgate_sql::resolve::Cursors;
use rowgate_sql::rest::{self, query_string};
use serde::Serialize;

use crate::api::rest::rows::Rows;
use crate::api::rest::target::RequestTarget;
use crate::api::rest::wording::WORDING;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::read::{self, Count};
use crate::server::respond::Refusal;

type Answered<T> = Result<T, Refusal>;

/// `GET /auth/{tenant}/api/{entity}`
pub(crate) async fn collection(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
) -> Answered<Rows> {
    let resolved = |context: &KeyContext| {
        let (entity, request) = (target.entity(context)?, query_string::parse(target.query())?);
        let cursors = Cursors { key: &app.cursor_key, caller: context.key.id.as_str() };
        let scope = context.snapshot.scope(&context.key);
        target.origin()?;
        rest::collection(&context.snapshot.catalog, &scope, &entity, &request, cursors)
    };
    let answer = read::run(&caller, &app.cursor_key, &WORDING, resolved).await?;
    let count = match answer.count {
        None => None,
        Some(Count::Known(count)) => Some(count),
        Some(Count::Unsaid) => read::count(&caller, &app.cursor_key, &WORDING, resolved).await?,
    };
    let next_link = answer.after.map(|token| target.next_link(&token)).transpose()?;
    let tail = answer.tail.map(|tail| (tail, target.link()));
    Ok(Rows { json: answer.json, next_link, count, tail })
}

/// `GET /auth/{tenant}/api/{entity}/{pk}/{value}[/{pk2}/{value2}...]`
pub(crate) async fn row(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
) -> Answered<Response> {
    let resolved = |context: &KeyContext| {
        let (entity, request) = (target.entity(context)?, query_string::parse(target.query())?);
        let scope = context.snapshot.scope(&context.key);
        let catalog = &context.snapshot.catalog;
        let key = target.key().map_err(|problem| match rest::key_path(catalog, &scope, &entity) {
            Some(key) => problem.detail(format!("a row of {entity} is at /{entity}{key}")),
            None => problem,
        });
        rest::row(catalog, &scope, &entity, &key?, &request)
    };
    let answer = read::run(&caller, &app.cursor_key, &WORDING, resolved).await?;
    let tail = answer.tail.map(|tail| (tail, target.link()));
    let mut response = Rows { json: answer.json, next_link: None, count: None, tail }.into_response();
    if let Some(tagged) = answer.tagged {
        // Clients may keep it, but must revalidate it each time.
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        response.extensions_mut().insert(tagged);
    }
    Ok(response)
}

/// `GET /auth/{tenant}/api`: the entities that this key may read, and those that it may call.
pub(crate) async fn entities(caller: Caller, target: RequestTarget) -> Answered<Response> {
    let context = caller.authenticate_fresh().await?;
    query_string::refuse_options(target.query())?;
    let scope = context.snapshot.scope(&context.key);
    let base = format!("{}/auth/{}/api", target.origin()?, caller.tenant.slug);
    let readable = context.snapshot.catalog.entities.values().filter(|entity| entity.rest);
    let value = readable.filter_map(|entity| Listed::new(&base, entity, scope.entities.get(&entity.name)?));
    let body = serde_json::to_vec(&Listing { value: value.collect() }).expect("names and lists are JSON");
    Ok(Response::new(Body::from(body)))
}

#[derive(Serialize)]
struct Listing<'a> {
    value: Vec<Listed<'a>>,
}

/// One entity, as far as the key may read or call it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    name: &'a EntityName,
    kind: rowgate_sql::catalog::EntityKind,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_fields: Option<Vec<&'a str>>,
    /// What a call takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<&'a str>>,
    /// Of its rows, or of what a call gives.
    fields: Vec<&'a str>,
}

impl<'a> Listed<'a> {
    /// `None` without a readable field, and for a routine that may not be called.
    fn new(base: &str, entity: &'a Entity, rights: &Rights) -> Option<Listed<'a>> {
        let url = format!("{base}/{}", entity.name);
        if let Some(routine) = &entity.routine {
            let parameters = routine.params.iter().filter(|param| param.mode != Mode::Out);
            let fields = routine.returns.outputs().iter().map(|output| output.name.as_str());
            return rights.execute.then(|| Listed {
                name: &entity.name,
                kind: entity.kind,
                url,
                key_fields: None,
                parameters: Some(parameters.map(|param| param.name.as_str()).collect()),
                fields: fields.collect(),
            });
        }
        let may_read = |i: &usize| rights.read.get(*i).copied().unwrap_or(false);
        let name = |i: usize| entity.fields[i].name.as_str();
        let fields: Vec<_> = (0..entity.fields.len()).filter(may_read).map(name).collect();
        let key_fields = entity.key.iter().copied().filter(may_read).map(name).collect();
        (!fields.is_empty()).then_some(Listed {
            name: &entity.name,
            kind: entity.kind,
            url,
            key_fields: Some(key_fields),
            parameters: None,
            fields,
        })
    }
}
