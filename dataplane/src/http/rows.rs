//! `/auth/{tenant}/api/{entity}`: rows made and deleted.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::catalog::Entity;
use rowgate_sql::{body, compile, resolve};
use serde_json::{Map, Value};

use super::rest::Here;
use crate::app::App;
use crate::auth::Caller;
use crate::respond::{Refusal, Rows};
use crate::sent::Sent;
use crate::writes::{self, Written};

/// What stays as it is in a part of a path.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// `POST /auth/{tenant}/api/{entity}`: one row or a list of them, all or none.
pub(super) async fn create(
    caller: Caller,
    State(_): State<Arc<App>>,
    here: Here,
    sent: Sent,
) -> Result<Response, Refusal> {
    let written = writes::run(&caller, |known| {
        let entity = here.entity()?;
        no_options(&here)?;
        here.origin()?;
        let body = sent.body().and_then(body::parse);
        let scope = known.snapshot.scope(&known.key);
        let insert = resolve::insert(&known.snapshot.catalog, &scope, &entity, body, !sent.is_minimal)?;
        Ok(compile::insert(&insert))
    });
    let Written { page, entity } = written.await?;
    let location = location(&here, &entity, &page.json, &sent);
    let mut response = match sent.is_minimal {
        true => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        false => {
            let rows = Rows { json: page.json, next_link: None, count: None, tail: None };
            let mut response = rows.into_response();
            *response.status_mut() = StatusCode::CREATED;
            response
        }
    };
    if let Some(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// `DELETE /auth/{tenant}/api/{entity}/{pk}/{value}[/{pk2}/{value2}...]`
pub(super) async fn delete(
    caller: Caller,
    State(_): State<Arc<App>>,
    here: Here,
) -> Result<StatusCode, Refusal> {
    let written = writes::run(&caller, |known| {
        let (entity, key) = (here.entity()?, here.key()?);
        no_options(&here)?;
        let scope = known.snapshot.scope(&known.key);
        Ok(compile::delete(&resolve::delete(&known.snapshot.catalog, &scope, &entity, &key)?))
    });
    match written.await?.page.n_affected {
        Some(0) => {
            Err(Problem::new(Code::RowNotFound, "there is no row with this key for this API key").into())
        }
        _ => Ok(StatusCode::NO_CONTENT),
    }
}

fn no_options(here: &Here) -> Result<(), Problem> {
    match here.query().is_empty() {
        true => Ok(()),
        false => {
            Err(Problem::new(Code::BadRequest, "a write takes no options; leave out what follows on the ?"))
        }
    }
}

/// Where the one new row is. `None`: there are several, or the key's values are not known.
fn location(here: &Here, entity: &Entity, json: &[u8], sent: &Sent) -> Option<HeaderValue> {
    // Rows that were read back are objects joined by commas; one alone is JSON.
    let row: Map<String, Value> = match json.is_empty() {
        false => serde_json::from_slice(json).ok()?,
        true => serde_json::from_slice(sent.body().ok()?).ok()?,
    };
    let mut address = format!("{}{}", here.origin().ok()?, here.path());
    for &field in &entity.key {
        let name = &entity.fields[field].name;
        let value = match row.get(name)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        for part in [name.as_str(), &value] {
            address.push('/');
            address.extend(utf8_percent_encode(part, PART));
        }
    }
    HeaderValue::try_from(address).ok()
}
