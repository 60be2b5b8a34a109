//! Names become references: what a request may ask for under a scope. An absent name and an ungranted one are the
//! same thing here, because only what the scope may read is ever looked at.

mod call;
mod expand;
mod filter;
mod groups;
mod order;
mod path;
mod refusal;
mod value;
mod visible;
mod write;

use std::sync::Arc;

use rowgate_core::cursor;
use rowgate_core::derive::CursorKey;
use rowgate_core::name::EntityName;

use crate::catalog::{Catalog, Entity, Scope};
use crate::query::{Predicate, Query, Value};
use crate::request::{Comparison, Expr, ReadRequest};
pub use call::{call, may_call};
pub use filter::{FilterRefusal, Found, Subject, Takes};
pub use groups::groups;
pub use path::PathRefusal;
pub use refusal::{
    CallRefusal, Closure, ExpandRefusal, GroupRefusal, OrderRefusal, Refusal, Right, RowWrite, Unknown,
    Valued, VersionRefusal, WriteRefusal,
};
pub use value::ValueRefusal;
pub(crate) use value::input::bind as stored;
pub(crate) use visible::Visible;
pub use write::delete::delete;
pub use write::version::Precondition;
pub use write::{UpsertMode, insert, may_insert, may_upsert, upsert};

/// Rows of a page when no number is asked for.
pub const DEFAULT_PAGE_SIZE: u32 = 100;

/// What opens and makes cursors: the installation's key, and whose they are.
#[derive(Debug, Clone, Copy)]
pub struct Cursors<'a> {
    pub key: &'a CursorKey,
    /// `apiKeyId`: a cursor of one key is no cursor for another.
    pub caller: &'a str,
}

/// A read of rows.
pub fn collection(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    request: &ReadRequest,
    cursors: Cursors<'_>,
) -> Result<Query, Refusal> {
    let visible = find(catalog, scope, entity, Visible::of)?;
    let mut query = list(catalog, &visible, request)?;
    query.select.extend(expand::expanded((catalog, scope), &visible, &request.expand)?);
    query.count = request.count;
    let binding = order::binding(&query, request.filter.as_ref(), cursors);
    if let Some(token) = &request.after {
        let position = cursor::decode(cursors.key, binding, token).ok();
        let position = position.filter(|position| position.len() == query.order.len());
        query.after = Some(position.ok_or(Refusal::Cursor)?);
    }
    query.binding = Some(binding);
    Ok(query)
}

/// Rows of an entity, from the first on.
fn list(catalog: &Catalog, visible: &Visible<'_>, request: &ReadRequest) -> Result<Query, Refusal> {
    let max = catalog.limits.max_page_size;
    let select = visible.select(request.select.as_deref())?;
    let filter = filtered(visible, request.filter.as_ref())?;
    let order::Order { terms, references } = order::terms(visible, &request.orderby)?;
    let take = page_size(request.first, max)?;
    Ok(Query {
        entity: Arc::clone(visible.entity),
        select,
        filter,
        group: None,
        order: terms,
        order_references: references,
        after: None,
        take,
        max_take: max as usize,
        count: false,
        binding: None,
        version: None,
    })
}

fn filtered(visible: &Visible<'_>, expr: Option<&Expr>) -> Result<Option<Predicate>, Refusal> {
    let filter = expr.map(|expr| filter::predicate(visible, expr)).transpose()?;
    Ok(filter.map(|filter| filter::growth::bounded(visible.entity, filter)).transpose()?)
}

/// A read of one row: `key` is names and values of the fields of the key.
pub fn row(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    request: &ReadRequest,
) -> Result<Query, Refusal> {
    let visible = find(catalog, scope, entity, Visible::of)?;
    let ReadRequest { select: _, filter, orderby, first, after, count, others: _, expand } = request;
    if filter.is_some() || !orderby.is_empty() || first.is_some() || after.is_some() || *count {
        return Err(Refusal::OptionOfRow);
    }
    let mut select = visible.select(request.select.as_deref())?;
    select.extend(expand::expanded((catalog, scope), &visible, expand)?);
    Ok(Query {
        entity: Arc::clone(visible.entity),
        select,
        filter: Some(by_key(&visible, key_path)?),
        group: None,
        order: Vec::new(),
        order_references: Vec::new(),
        after: None,
        take: 1,
        max_take: 1,
        count: false,
        binding: None,
        // rows of other entities have versions of their own
        version: visible.tag().filter(|_| expand.is_empty()),
    })
}

/// The entity as `see` shows it to the scope. That its rows are closed is said only to who has a right on it, and not as
/// absence: it comes back within seconds, and nobody should forget its rows.
pub(crate) fn find<'a>(
    catalog: &'a Catalog,
    scope: &'a Scope,
    name: &EntityName,
    see: fn(&'a Arc<Entity>, &'a Scope) -> Option<Visible<'a>>,
) -> Result<Visible<'a>, Refusal> {
    exists(scope, name)?;
    let entity = catalog.entities.get(name).ok_or(Refusal::NoEntity)?;
    if call::may(entity, scope) {
        return Err(Refusal::OnlyCalled);
    }
    let visible = see(entity, scope).ok_or(Refusal::NoEntity)?;
    open(catalog, entity)?;
    Ok(visible.within(catalog))
}

/// Whether rows of the entity can be read now.
pub fn may_read(catalog: &Catalog, scope: &Scope, entity: &EntityName) -> Result<(), Refusal> {
    find(catalog, scope, entity, Visible::of).map(drop)
}

/// Whether the scope may do anything with the entity.
pub(crate) fn may_use(entity: &Arc<Entity>, scope: &Scope) -> bool {
    call::may(entity, scope) || Visible::for_write(entity, scope).is_some()
}

/// Whether what the entity stands for exists and is granted; a scope without a permission on it is not told.
fn exists(scope: &Scope, name: &EntityName) -> Result<(), Refusal> {
    match scope.is_closed(name) {
        true => Err(Refusal::Closed(Closure::Absent)),
        false => Ok(()),
    }
}

/// Whether the entity may be used as it stands in the database now.
fn open(catalog: &Catalog, entity: &Entity) -> Result<(), Refusal> {
    if !catalog.unguarded.contains(&entity.name) {
        return Ok(());
    }
    Err(Refusal::Closed(Closure::Unguarded(entity.kind)))
}

fn by_key(visible: &Visible<'_>, path: &[(String, String)]) -> Result<Predicate, Refusal> {
    let entity = visible.entity;
    if path.len() != entity.key.len() {
        return Err(Refusal::KeyNames);
    }
    let mut conditions = Vec::with_capacity(path.len());
    for &field in &entity.key {
        let (_, text) =
            path.iter().find(|(name, _)| *name == entity.fields[field].name).ok_or(Refusal::KeyNames)?;
        let ty = &entity.fields[field].ty;
        let mut bind = value::bind(ty, text).map_err(|refusal| {
            let name = entity.fields[field].name.clone();
            Refusal::Key(Valued { name, ty: ty.name.clone(), refusal })
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

fn page_size(first: Option<i64>, max: u32) -> Result<usize, Refusal> {
    match first {
        None => Ok(DEFAULT_PAGE_SIZE.min(max) as usize),
        Some(-1) => Ok(max as usize),
        Some(n) if 1 <= n && n <= i64::from(max) => Ok(n as usize),
        Some(_) => Err(Refusal::PageSize { max }),
    }
}
