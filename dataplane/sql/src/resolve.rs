//! Names become references: what a request may ask for under a scope. An absent name and an ungranted one are the
//! same thing here, because only what the scope may read is ever looked at.

mod call;
mod filter;
mod order;
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
use crate::request::{Comparison, ReadRequest};
pub use call::{call, may_call};
pub use filter::{FilterRefusal, Found, Subject, Takes};
pub use refusal::{
    CallRefusal, OrderRefusal, Refusal, Right, RowWrite, Unknown, Valued, VersionRefusal, WriteRefusal,
};
pub use value::ValueRefusal;
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
                .ok_or(Refusal::Cursor)?,
        ),
        None => None,
    };
    Ok(Query {
        entity: Arc::clone(visible.entity),
        select,
        filter,
        group: None,
        order,
        after,
        take,
        max_take: max as usize,
        count: request.count,
        binding: Some(binding),
        version: None,
    })
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
    let ReadRequest { select: _, filter, orderby, first, after, count, others: _ } = request;
    if filter.is_some() || !orderby.is_empty() || first.is_some() || after.is_some() || *count {
        return Err(Refusal::OptionOfRow);
    }
    Ok(Query {
        entity: Arc::clone(visible.entity),
        select: visible.select(request.select.as_deref())?,
        filter: Some(by_key(&visible, key_path)?),
        group: None,
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
pub(crate) fn find<'a>(
    catalog: &'a Catalog,
    scope: &'a Scope,
    name: &EntityName,
    see: fn(&'a Arc<Entity>, &'a Scope) -> Option<Visible<'a>>,
) -> Result<Visible<'a>, Refusal> {
    let entity = catalog.entities.get(name).ok_or(Refusal::NoEntity)?;
    if call::may(entity, scope) {
        return Err(Refusal::OnlyCalled);
    }
    let visible = see(entity, scope).ok_or(Refusal::NoEntity)?;
    open(catalog, entity)?;
    Ok(visible)
}

/// Whether the scope may do anything with the entity.
pub(crate) fn may_use(entity: &Arc<Entity>, scope: &Scope) -> bool {
    call::may(entity, scope) || Visible::for_write(entity, scope).is_some()
}

/// Whether the entity may be used as it stands in the database now.
fn open(catalog: &Catalog, entity: &Entity) -> Result<(), Refusal> {
    if !catalog.unguarded.contains(&entity.name) {
        return Ok(());
    }
    Err(Refusal::Closed(entity.kind))
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
