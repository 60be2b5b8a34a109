//! From what was parsed to what is to be compiled, or to the problem that says why not: what [`crate::resolve`] finds, in the words
//! of REST.

use rowgate_core::name::EntityName;
use rowgate_core::problem::Problem;

use super::problem;
use super::query_string::refuse_strays;
use crate::catalog::{Catalog, Scope};
use crate::query::{Call, Delete, Insert, Query, Upsert};
use crate::request::{Body, ReadRequest};
use crate::resolve::{self, Cursors, How, Only, Refusal, Visible};

/// `GET /{entity}`.
pub fn collection(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    request: &ReadRequest,
    cursors: Cursors<'_>,
) -> Result<Query, Problem> {
    let worded = |refusal| problem::of(catalog, scope, entity, refusal);
    let visible = resolve::find(catalog, scope, entity, Visible::of).map_err(worded)?;
    refuse_strays(&request.others, false, &|name| problem::spelt(&visible, name))?;
    resolve::collection(catalog, scope, entity, request, cursors).map_err(worded)
}

/// `GET /{entity}/{pk}/{value}...`: `key_path` is names and values in the order of the path, percent-decoded once.
pub fn row(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    request: &ReadRequest,
) -> Result<Query, Problem> {
    let worded = |refusal| problem::of(catalog, scope, entity, refusal);
    let visible = resolve::find(catalog, scope, entity, Visible::of).map_err(worded)?;
    refuse_strays(&request.others, true, &|name| problem::spelt(&visible, name))?;
    resolve::row(catalog, scope, entity, key_path, request).map_err(worded)
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
    may_insert(catalog, scope, entity)?;
    resolve::insert(catalog, scope, entity, &body?, reads_back)
        .map_err(|refusal| problem::of(catalog, scope, entity, refusal))
}

/// Whether the scope may make or change rows of the entity at all, and the address is that of one, whatever the body says.
pub fn may_upsert(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    only: &Only,
) -> Result<(), Problem> {
    resolve::may_upsert(catalog, scope, entity, key_path, only)
        .map_err(|refusal| problem::of(catalog, scope, entity, refusal))
}

/// `PATCH` and `PUT /{entity}/{pk}/{value}...`
pub fn upsert(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    body: Result<Body<'_>, Problem>,
    (how, only, reads_back): (How, &Only, bool),
) -> Result<Upsert, Problem> {
    may_upsert(catalog, scope, entity, key_path, only)?;
    resolve::upsert(catalog, scope, entity, key_path, &body?, (how, only, reads_back))
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
    may_call(catalog, scope, entity)?;
    let worded = |refusal: Refusal| problem::of(catalog, scope, entity, refusal);
    resolve::call(catalog, scope, entity, body?, keeps_rows).map_err(worded)
}
