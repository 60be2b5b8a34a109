//! From what was parsed to what is to be compiled, or to the problem that says why not: what [`crate::resolve`] finds, in the words
//! of REST.

use rowgate_core::name::EntityName;
use rowgate_core::problem::Problem;

use super::problem;
use super::query_string::refuse_strays;
use crate::catalog::{Catalog, Scope};
use crate::query::{Call, Delete, Insert, Query, Upsert};
use crate::request::{Body, ReadRequest};
use crate::resolve::{self, Cursors, Precondition, UpsertMode, Visible};

/// `GET /{entity}`.
pub fn collection(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    request: &ReadRequest,
    cursors: Cursors<'_>,
) -> Result<Query, Problem> {
    refuse_others(catalog, scope, entity, request, false)?;
    resolve::collection(catalog, scope, entity, request, cursors)
        .map_err(|refusal| problem::of(catalog, scope, entity, refusal))
}

/// `GET /{entity}/{pk}/{value}...`: `key_path` is names and values in the order of the path, percent-decoded once.
pub fn row(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    request: &ReadRequest,
) -> Result<Query, Problem> {
    refuse_others(catalog, scope, entity, request, true)?;
    resolve::row(catalog, scope, entity, key_path, request)
        .map_err(|refusal| problem::of(catalog, scope, entity, refusal))
}

/// Refuses parameters that are no options, in a request that has any. An entity that cannot be read is refused before them.
fn refuse_others(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    request: &ReadRequest,
    of_row: bool,
) -> Result<(), Problem> {
    if request.others.is_empty() {
        return Ok(());
    }
    let visible = resolve::find(catalog, scope, entity, Visible::of)
        .map_err(|refusal| problem::of(catalog, scope, entity, refusal))?;
    refuse_strays(&request.others, of_row, &|name| problem::spelt(&visible, name))
}

/// What was parsed of a body. One that cannot be parsed is a problem only for a caller that `may` send it.
fn parsed<T>(body: Result<T, Problem>, may: impl FnOnce() -> Result<(), Problem>) -> Result<T, Problem> {
    body.or_else(|problem| may().and(Err(problem)))
}

/// Whether the scope may make rows of the entity at all, whatever the body says.
pub fn may_insert(catalog: &Catalog, scope: &Scope, entity: &EntityName) -> Result<(), Problem> {
    resolve::may_insert(catalog, scope, entity)
        .map_err(|refusal| problem::of(catalog, scope, entity, refusal))
}

/// `POST /{entity}`. A `body` that is none is a problem only for who may create rows. `reads_back`: the caller wants the rows
/// as they were stored.
pub fn insert(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    body: Result<Body<'_>, Problem>,
    reads_back: bool,
) -> Result<Insert, Problem> {
    let body = parsed(body, || may_insert(catalog, scope, entity))?;
    resolve::insert(catalog, scope, entity, &body, reads_back)
        .map_err(|refusal| problem::of(catalog, scope, entity, refusal))
}

/// Whether the scope may make or change rows of the entity at all, and the address is that of one, whatever the body says.
pub fn may_upsert(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    precondition: &Precondition,
) -> Result<(), Problem> {
    resolve::may_upsert(catalog, scope, entity, key_path, precondition)
        .map_err(|refusal| problem::of(catalog, scope, entity, refusal))
}

/// `PATCH` and `PUT /{entity}/{pk}/{value}...`
pub fn upsert(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    body: Result<Body<'_>, Problem>,
    (mode, precondition, reads_back): (UpsertMode, &Precondition, bool),
) -> Result<Upsert, Problem> {
    let body = parsed(body, || may_upsert(catalog, scope, entity, key_path, precondition))?;
    resolve::upsert(catalog, scope, entity, key_path, &body, (mode, precondition, reads_back))
        .map_err(|refusal| problem::of(catalog, scope, entity, refusal))
}

/// `DELETE /{entity}/{pk}/{value}...`
pub fn delete(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
) -> Result<Delete, Problem> {
    resolve::delete(catalog, scope, entity, key_path)
        .map_err(|refusal| problem::of(catalog, scope, entity, refusal))
}

/// Whether the scope may call the entity now, whatever the body says.
pub fn may_call(catalog: &Catalog, scope: &Scope, entity: &EntityName) -> Result<(), Problem> {
    resolve::may_call(catalog, scope, entity).map_err(|refusal| problem::of(catalog, scope, entity, refusal))
}

/// `POST /{entity}` where a routine stands behind it. `body`: `None` where nothing was sent. `keeps_rows`: the caller wants
/// what it gives.
pub fn call(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    body: Result<Option<Body<'_>>, Problem>,
    keeps_rows: bool,
) -> Result<Call, Problem> {
    let body = parsed(body, || may_call(catalog, scope, entity))?;
    resolve::call(catalog, scope, entity, body, keeps_rows)
        .map_err(|refusal| problem::of(catalog, scope, entity, refusal))
}
