//! Names become references: what a request may ask for under a scope. An absent name and an ungranted one are the
//! same thing here, because only what the scope may read is ever looked at.

mod call;
mod filter;
mod order;
mod told;
mod value;
mod visible;
mod write;

use std::sync::Arc;

use rowgate_core::cursor;
use rowgate_core::derive::CursorKey;
use rowgate_core::name::EntityName;
use rowgate_core::nearest::nearest;
use rowgate_core::problem::{Code, Problem};

use crate::catalog::{Catalog, Entity, EntityKind, Scope};
use crate::query::{Predicate, Query, Value};
use crate::request::{Comparison, ReadRequest};
use crate::rest::refuse_strays;
pub use call::{call, may_call};
pub(crate) use told::{another_key, in_row};
pub(crate) use value::input::quoted;
use visible::Visible;
pub use write::able::allowed;
pub use write::delete::delete;
pub use write::version::Only;
pub use write::{How, insert, may_insert, may_upsert, upsert};

/// Rows of a page when `$first` is not given.
pub const DEFAULT_PAGE_SIZE: u32 = 100;

/// What opens and makes cursors: the installation's key, and whose they are.
#[derive(Debug, Clone, Copy)]
pub struct Cursors<'a> {
    pub key: &'a CursorKey,
    /// `apiKeyId`: a cursor of one key is no cursor for another.
    pub caller: &'a str,
}

/// The entities that the scope may read over REST, by name.
pub fn readable<'a>(catalog: &'a Catalog, scope: &'a Scope) -> impl Iterator<Item = &'a Arc<Entity>> {
    catalog.entities.values().filter(|entity| Visible::of(entity, scope).is_some())
}

/// `GET /{entity}`.
pub fn collection(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    request: &ReadRequest,
    cursors: Cursors<'_>,
) -> Result<Query, Problem> {
    let visible = find(catalog, scope, entity, Visible::of)?;
    refuse_strays(&request.others, false, &|name| visible.spelt(name))?;
    let max = catalog.limits.max_page_size;
    let select = visible.select(request.select.as_deref())?;
    let filter = request.filter.as_ref().map(|expr| filter::predicate(&visible, expr)).transpose()?;
    let filter = filter.map(|filter| filter::growth::bounded(visible.entity, filter)).transpose()?;
    let order = order::terms(&visible, &request.orderby)?;
    let take = page_size(request.first, max)?;
    let binding = order::binding(&visible, &order, request.filter.as_ref(), cursors);
    let after = match &request.after {
        Some(token) => Some(
            cursor::decode(cursors.key, binding, token)
                .ok()
                .filter(|position| position.len() == order.len())
                .ok_or_else(invalid_cursor)?,
        ),
        None => None,
    };
    Ok(Query {
        entity: Arc::clone(visible.entity),
        select,
        filter,
        order,
        after,
        take,
        max_take: max as usize,
        count: request.count,
        binding: Some(binding),
        version: None,
    })
}

/// `GET /{entity}/{pk}/{value}...`: `key_path` is names and values in the order of the path, percent-decoded once.
pub fn row(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    request: &ReadRequest,
) -> Result<Query, Problem> {
    let visible = find(catalog, scope, entity, Visible::of)?;
    refuse_strays(&request.others, true, &|name| visible.spelt(name))?;
    let ReadRequest { select: _, filter, orderby, first, after, count, others: _ } = request;
    if filter.is_some() || !orderby.is_empty() || first.is_some() || after.is_some() || *count {
        return Err(Problem::new(
            Code::BadRequest,
            "a row read by its key takes only $select; ask the collection for $filter, $orderby, $first, $after and $count",
        ));
    }
    Ok(Query {
        entity: Arc::clone(visible.entity),
        select: visible.select(request.select.as_deref())?,
        filter: Some(by_key(&visible, key_path)?),
        order: Vec::new(),
        after: None,
        take: 1,
        max_take: 1,
        count: false,
        binding: None,
        version: visible.tag(),
    })
}

/// The entity as `see` shows it to the scope. That its rows are closed is said only to who has a right on it, and not as
/// absence: it comes back within seconds, and nobody should forget its rows.
fn find<'a>(
    catalog: &'a Catalog,
    scope: &'a Scope,
    name: &EntityName,
    see: fn(&'a Arc<Entity>, &'a Scope) -> Option<Visible<'a>>,
) -> Result<Visible<'a>, Problem> {
    let entity = catalog.entities.get(name).ok_or_else(|| not_found(catalog, scope, name.as_str()))?;
    if call::may(entity, scope) {
        return Err(Problem::only_called());
    }
    let visible = see(entity, scope).ok_or_else(|| not_found(catalog, scope, name.as_str()))?;
    open(catalog, entity)?;
    Ok(visible)
}

/// What is told of an entity that the scope may not use, or that is not there. `asked` is as it was written; the nearest
/// name is one that the scope may use, so that the answer is the same in both cases.
#[must_use]
pub fn not_found(catalog: &Catalog, scope: &Scope, asked: &str) -> Problem {
    let may_use =
        |entity: &&Arc<Entity>| call::may(entity, scope) || Visible::for_write(entity, scope).is_some();
    let names = catalog.entities.values().filter(may_use).map(|entity| entity.name.as_str());
    let problem = Problem::entity_not_found();
    // `orders(5)` is a row in OData.
    if let Some(before) = asked.split_once('(').and_then(|(before, _)| before.parse().ok())
        && let Some(key) = key_path(catalog, scope, &before)
    {
        return problem.detail(format!("a row of {before} is at /{before}{key}"));
    }
    match nearest(asked, names.filter(|name| *name != asked)) {
        Some(near) => problem.detail(format!("did you mean {near:?}?")),
        None => problem,
    }
}

/// Whether the entity may be used as it stands in the database now.
fn open(catalog: &Catalog, entity: &Entity) -> Result<(), Problem> {
    if !catalog.unguarded.contains(&entity.name) {
        return Ok(());
    }
    let what = match entity.kind {
        EntityKind::Table | EntityKind::View => {
            "row-level security of this entity was turned off in the database, so it is closed; it opens by itself when that is repaired"
        }
        EntityKind::Procedure => {
            "what this entity calls was changed in the database, so it is closed; it opens by itself when that is repaired"
        }
    };
    Err(Problem::new(Code::Unavailable, what))
}

/// What follows the address of an entity in that of one of its rows; `None` where the scope may not read the fields of the
/// key, or the entity has no rows.
#[must_use]
pub fn key_path(catalog: &Catalog, scope: &Scope, entity: &EntityName) -> Option<String> {
    let visible = find(catalog, scope, entity, Visible::of).ok()?;
    let key = &visible.entity.key;
    let may_read = |at: &usize| visible.fields().any(|(field, _)| field == *at);
    (!key.is_empty() && key.iter().all(may_read)).then(|| key_pattern(visible.entity))
}

/// `/{key field}/{value}` of each field of the key.
fn key_pattern(entity: &Entity) -> String {
    entity.key.iter().map(|&at| format!("/{}/{{value}}", entity.fields[at].name)).collect()
}

fn by_key(visible: &Visible<'_>, path: &[(String, String)]) -> Result<Predicate, Problem> {
    let entity = visible.entity;
    let wrong_names = || {
        let (name, pattern) = (&entity.name, key_pattern(entity));
        Problem::new(
            Code::BadRequest,
            format!("a row of {name} is named by all of its key fields, each once: /{name}{pattern}"),
        )
    };
    if path.len() != entity.key.len() {
        return Err(wrong_names());
    }
    let mut conditions = Vec::with_capacity(path.len());
    for &field in &entity.key {
        let (_, text) =
            path.iter().find(|(name, _)| *name == entity.fields[field].name).ok_or_else(wrong_names)?;
        let ty = &entity.fields[field].ty;
        let mut bind = value::bind(ty, text).map_err(|misfit| {
            let name = &entity.fields[field].name;
            Problem::new(Code::InvalidValue, format!("the key field {name:?} is {}: {misfit}", ty.name))
        })?;
        bind.field = u16::try_from(field).ok();
        conditions.push(Predicate::Compare {
            left: Value::Field(field),
            op: Comparison::Eq,
            right: Value::Bind(bind),
        });
    }
    Ok(Predicate::All(conditions))
}

fn page_size(first: Option<i64>, max: u32) -> Result<usize, Problem> {
    match first {
        None => Ok(DEFAULT_PAGE_SIZE.min(max) as usize),
        Some(-1) => Ok(max as usize),
        Some(n) if 1 <= n && n <= i64::from(max) => Ok(n as usize),
        Some(_) => Err(Problem::new(
            Code::BadRequest,
            format!("$first is a number of rows from 1 to {max}, or -1 for that maximum"),
        )),
    }
}

fn invalid_cursor() -> Problem {
    Problem::new(
        Code::InvalidCursor,
        "the cursor in $after belongs to another question; keep entity, $filter, $orderby and key as they were, \
         or start again without $after",
    )
}
