//! `/auth/{tenant}/api/{entity}`: rows made, changed and deleted.

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use rowgate_core::percent::{self, BadEncoding};
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::catalog::Entity;
use rowgate_sql::compile;
use rowgate_sql::resolve::{Precondition, UpsertMode};
use rowgate_sql::rest::{self, body};
use serde_json::value::RawValue;

use crate::api::rest::entity_tags;
use crate::api::rest::rows::Rows;
use crate::api::rest::target::RequestTarget;
use crate::api::rest::wording::WORDING;
use crate::api::rest::write_request::{Head, UnreadBody, WriteRequest};
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::post::{self, Posted, Statement};
use crate::execute::write::problem as write_problem;
use crate::execute::write::{self, Written};
use crate::server::respond::Refusal;

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// `POST /auth/{tenant}/api/{entity}`: one row or a list of them, all or none; or a call, where a routine stands behind it.
pub(crate) async fn create(
    caller: Caller,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    let asked = |context: &KeyContext| {
        let entity = target.entity(context)?;
        no_options(&target)?;
        target.origin()?;
        let found = context.snapshot.catalog.entities.get(&entity);
        let is_called = found.is_some_and(|found| found.routine.is_some());
        Ok::<_, Problem>((entity, is_called, context.snapshot.scope(&context.key)))
    };
    let may = |context: &KeyContext, head: &Head| {
        let ((entity, is_called, scope), catalog) = (asked(context)?, &context.snapshot.catalog);
        if is_called {
            rest::may_call(catalog, &scope, &entity)?;
            return head.fits_if_any();
        }
        rest::may_insert(catalog, &scope, &entity)?;
        head.fits()
    };
    let request = unread.receive(&caller, may).await.map_err(Problem::of_nothing_written)?;
    let reserve = |n| request.reserve(n);
    let posted = post::run(&caller, &WORDING, &reserve, |context| {
        let ((entity, is_called, scope), catalog) = (asked(context)?, &context.snapshot.catalog);
        let reads_back = !request.head.is_minimal;
        if is_called {
            let body = request.body_if_any().and_then(|body| body.map(body::parse).transpose());
            let call = rest::call(catalog, &scope, &entity, body, reads_back)?;
            return Ok(Statement::Call(compile::call(&call)));
        }
        let body = request.body().and_then(body::parse);
        let insert = rest::insert(catalog, &scope, &entity, body, reads_back)?;
        Ok(Statement::Write(compile::insert(&insert)))
    });
    let written = match posted.await? {
        Posted::Called(json) => return Ok(answer(&request, StatusCode::CREATED, json)),
        Posted::Written(written) => written,
    };
    if written.n_affected == 0 {
        return Err(write_problem::passed_over().into());
    }
    // Rows that were read back are objects joined by commas; one alone is JSON.
    let row = if written.json.is_empty() { request.body().unwrap_or_default() } else { &written.json };
    let location = location(&target, &written.entity, row);
    Ok(written_answer(&request, StatusCode::CREATED, written, location))
}

/// `PATCH` of a row's address: the fields that are sent.
pub(crate) async fn patch(
    caller: Caller,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    upsert(caller, target, unread, UpsertMode::Merge).await
}

/// `PUT` of a row's address: all fields.
pub(crate) async fn put(
    caller: Caller,
    target: RequestTarget,
    unread: UnreadBody,
) -> Result<Response, Refusal> {
    upsert(caller, target, unread, UpsertMode::Replace).await
}

async fn upsert(
    caller: Caller,
    target: RequestTarget,
    unread: UnreadBody,
    mode: UpsertMode,
) -> Result<Response, Refusal> {
    let asked = |context: &KeyContext| {
        let (entity, key) = (target.entity(context)?, target.key()?);
        no_options(&target)?;
        target.origin()?;
        Ok::<_, Problem>((entity, key, context.snapshot.scope(&context.key)))
    };
    let may = |context: &KeyContext, head: &Head| {
        let (entity, key, scope) = asked(context)?;
        let precondition = head.precondition.as_ref().map_err(Problem::clone)?;
        rest::may_upsert(&context.snapshot.catalog, &scope, &entity, &key, precondition)?;
        head.fits()
    };
    let request = unread.receive(&caller, may).await.map_err(Problem::of_nothing_written)?;
    let reserve = |n| request.reserve(n);
    let upserted = write::upsert(&caller, &WORDING, &reserve, |context| {
        let (entity, key, scope) = asked(context)?;
        let (body, wish) = (
            request.body().and_then(body::parse),
            (mode, request.head.precondition.as_ref().map_err(Problem::clone)?, !request.head.is_minimal),
        );
        rest::upsert(&context.snapshot.catalog, &scope, &entity, &key, body, wish)
    });
    let (mut written, is_made) = upserted.await?;
    if !is_made {
        written.json = shown(written.json);
        return Ok(written_answer(&request, StatusCode::OK, written, None));
    }
    let asked = format!("{}{}", target.origin()?, target.path());
    // A trigger may have given it another key.
    let made = location(&target, &written.entity, &written.json);
    let made = made.filter(|made| !is_same(made, &asked));
    let location = made.or_else(|| HeaderValue::try_from(asked).ok());
    written.json = shown(written.json);
    Ok(written_answer(&request, StatusCode::CREATED, written, location))
}

/// Without a field that may be read a row is empty braces.
fn shown(json: Vec<u8>) -> Vec<u8> {
    if json == b"{}" { Vec::new() } else { json }
}

/// 204 where the caller wants no rows, else `status` with them.
fn answer(request: &WriteRequest, status: StatusCode, json: Vec<u8>) -> Response {
    match request.head.is_minimal {
        true => StatusCode::NO_CONTENT.into_response(),
        false => (status, Rows { json, next_link: None, count: None, tail: None }).into_response(),
    }
}

/// The answer of a write, with the tag that a read of the row would have now (RFC 9110, 8.8). More rows than an answer holds
/// are left out, as if they were not wanted, and a header says so (RFC 7240, 3).
fn written_answer(
    request: &WriteRequest,
    status: StatusCode,
    written: Written,
    location: Option<HeaderValue>,
) -> Response {
    let mut response = match written.is_left_out && !request.head.is_minimal {
        true => (StatusCode::NO_CONTENT, [(PREFERENCE_APPLIED, "return=minimal")]).into_response(),
        false => answer(request, status, written.json),
    };
    if let Some(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    if let Some(tagged) = written.tagged {
        response.extensions_mut().insert(tagged);
    }
    response
}

/// Whether both are one address, however they are escaped and in whatever order its fields are.
fn is_same(made: &HeaderValue, asked: &str) -> bool {
    fn parts(address: &str) -> Result<Vec<Cow<'_, str>>, BadEncoding> {
        let mut parts = address.split('/').map(percent::decode).collect::<Result<Vec<_>, _>>()?;
        parts.sort_unstable();
        Ok(parts)
    }
    made.to_str().is_ok_and(|made| parts(made).is_ok_and(|made| parts(asked) == Ok(made)))
}

/// `DELETE /auth/{tenant}/api/{entity}/{pk}/{value}[/{pk2}/{value2}...]`
pub(crate) async fn delete(
    caller: Caller,
    target: RequestTarget,
    asked: DeletePreconditions,
) -> Result<StatusCode, Refusal> {
    let deleted = write::delete(&caller, &WORDING, |context| {
        let (entity, key) = (target.entity(context)?, target.key()?);
        no_options(&target)?;
        let scope = context.snapshot.scope(&context.key);
        let delete = rest::delete(&context.snapshot.catalog, &scope, &entity, &key)?;
        match asked.0.as_ref().map_err(Problem::clone)? {
            // A row that is not there is a 404 in either case.
            Precondition::Either | Precondition::Present => Ok(delete),
            Precondition::Absent | Precondition::Tagged(_) => Err(Problem::new(
                Code::BadRequest,
                "rows of a table that allows deletes have no version; leave out If-Match and If-None-Match",
            )),
        }
    });
    deleted.await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What the headers of a request ask of the row.
pub(crate) struct DeletePreconditions(Result<Precondition, Problem>);

impl<S: Sync> FromRequestParts<S> for DeletePreconditions {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<DeletePreconditions, Infallible> {
        Ok(DeletePreconditions(entity_tags::precondition(&parts.headers)))
    }
}

fn no_options(target: &RequestTarget) -> Result<(), Problem> {
    match target.query().is_empty() {
        true => Ok(()),
        false => {
            Err(Problem::new(Code::BadRequest, "a write takes no options; leave out everything after the ?"))
        }
    }
}

/// As long as an address may be that is answered, with its host and headers beside it.
const MAX_LOCATION_LEN: usize = 8 << 10;

/// Where the one new row is, which is the whole of `json`. `None`: there are several, or the key's values are not known, or no
/// client could ask for it: what is too long, or a part that is a step upwards, however it is escaped.
fn location(target: &RequestTarget, entity: &Entity, json: &[u8]) -> Option<HeaderValue> {
    // not taken apart: what stands beside the key may be long
    let row: HashMap<String, &RawValue> = serde_json::from_slice(json).ok()?;
    // of `/auth/{tenant}/api/{entity}` and what may follow
    let path =
        target.path().match_indices('/').nth(4).map_or(target.path(), |(end, _)| &target.path()[..end]);
    let mut address = format!("{}{path}", target.origin().ok()?);
    for &field in &entity.key {
        let name = &entity.fields[field].name;
        let value = row.get(name)?.get();
        let value = match value.as_bytes().first()? {
            b'"' => serde_json::from_str(value).ok()?,
            b'n' | b'[' | b'{' => return None,
            _ => value.to_owned(),
        };
        for part in [name.as_str(), &value] {
            if matches!(part, "" | "." | "..") {
                return None;
            }
            address.push('/');
            address.extend(percent::encode(part));
        }
    }
    HeaderValue::try_from(address).ok().filter(|address| address.len() <= MAX_LOCATION_LEN)
}
