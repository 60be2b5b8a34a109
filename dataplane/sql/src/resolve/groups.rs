//! Groups of rows: names become keys and aggregates, which `having` and the order then find as the fields of an entity.

use std::collections::HashMap;
use std::sync::Arc;

use rowgate_core::cursor;
use rowgate_core::name::EntityName;

use super::refusal::{GroupRefusal, Refusal};
use super::value::family;
use super::visible::Visible;
use super::{Cursors, filtered, find, order, page_size};
use crate::catalog::{Catalog, Entity, Rights, Scope};
use crate::query::{Aggregate, Group, Query, Selected};
use crate::request::{AggregateFunction, Aggregation, Expr, GroupRequest, OrderBy};

/// The condition of the next page nests once for each key.
const MAX_KEYS: usize = 32;
/// Each of them may sort the rows by itself.
const MAX_AGGREGATIONS: usize = 64;
/// Of a name, in bytes.
const MAX_NAME_LEN: usize = 63;

/// A read of groups of rows: their keys and then what they come to, under the names of the request.
pub fn groups(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    request: &GroupRequest,
    cursors: Cursors<'_>,
) -> Result<Query, Refusal> {
    let visible = find(catalog, scope, entity, Visible::of)?;
    let max = catalog.limits.max_page_size;
    let keys = keys(&visible, &request.by)?;
    let aggregates = aggregates(&visible, &request.by, &request.aggregations)?;
    if keys.is_empty() && aggregates.is_empty() {
        return Err(GroupRefusal::Nothing.into());
    }
    let filter = filtered(&visible, request.filter.as_ref())?;
    let mut group = Group::new(visible.entity, keys, aggregates);
    let take = page_size(request.first, max)?;
    let all = scope_of(&group.entity);
    let order = {
        // the scope of the caller holds no rights on a group
        let groups = Visible::of(&group.entity, &all).ok_or(Refusal::NoEntity)?;
        let having = filtered(&groups, request.having.as_ref()).map_err(|refusal| match refusal {
            Refusal::Filter(refusal) => GroupRefusal::Having(refusal).into(),
            refusal => refusal,
        })?;
        let order = order::terms(&groups, &request.orderby).map_err(GroupRefusal::Order)?.terms;
        group.having = having;
        order
    };
    // one group has no order
    let is_one = group.keys.is_empty();
    let order = if is_one { Vec::new() } else { order };
    let binding = binding(&visible, &group, request, cursors);
    let after = request.after.as_ref().map(|token| {
        let position = cursor::decode(cursors.key, binding, token).ok();
        position.filter(|position| position.len() == order.len()).ok_or(Refusal::Cursor)
    });
    let names = group.aggregates.iter().map(|it| it.name.clone()).enumerate();
    let of_aggregates = names.map(|(number, name)| Selected::Aggregate { name, number });
    Ok(Query {
        entity: Arc::clone(visible.entity),
        select: group.keys.iter().copied().map(Selected::Field).chain(of_aggregates).collect(),
        filter,
        order,
        order_references: Vec::new(),
        after: after.transpose()?,
        take: if is_one { 1 } else { take },
        max_take: if is_one { 1 } else { max as usize },
        count: false,
        binding: Some(binding),
        version: None,
        group: Some(group),
    })
}

/// The fields by which rows are grouped. Each has an order, because groups are read in pages.
fn keys(visible: &Visible<'_>, names: &[String]) -> Result<Vec<usize>, Refusal> {
    if MAX_KEYS < names.len() {
        return Err(GroupRefusal::TooManyKeys { max: MAX_KEYS }.into());
    }
    let mut keys = Vec::with_capacity(names.len());
    for name in names {
        let field = visible.find(name).ok_or_else(|| Refusal::NoField(visible.unknown(name)))?;
        if keys.contains(&field) {
            return Err(GroupRefusal::KeyTwice(name.clone()).into());
        }
        let ty = &visible.entity.fields[field].ty;
        if !family::has_order(ty) {
            return Err(GroupRefusal::NoKey { name: name.clone(), ty: ty.name.clone() }.into());
        }
        keys.push(field);
    }
    Ok(keys)
}

fn aggregates(
    visible: &Visible<'_>,
    keys: &[String],
    requested: &[Aggregation],
) -> Result<Vec<Aggregate>, Refusal> {
    if MAX_AGGREGATIONS < requested.len() {
        return Err(GroupRefusal::TooManyAggregations { max: MAX_AGGREGATIONS }.into());
    }
    let mut aggregates: Vec<Aggregate> = Vec::with_capacity(requested.len());
    for it in requested {
        let name = &it.name;
        if !is_name(name) {
            return Err(GroupRefusal::NoName { name: name.clone(), max: MAX_NAME_LEN }.into());
        }
        let is_key = keys.contains(name);
        if is_key || aggregates.iter().any(|before| before.name == *name) {
            return Err(GroupRefusal::NameTaken { name: name.clone(), is_key }.into());
        }
        aggregates.push(aggregate(visible, it)?);
    }
    Ok(aggregates)
}

fn aggregate(visible: &Visible<'_>, requested: &Aggregation) -> Result<Aggregate, Refusal> {
    let Aggregation { name, function, field, distinct } = requested;
    let Some(field) = field else {
        return match (function, distinct) {
            (AggregateFunction::Count, false) => Ok(Aggregate::count(name.clone())),
            _ => Err(GroupRefusal::NeedsField { name: name.clone(), function: *function }.into()),
        };
    };
    let at = visible.find(field).ok_or_else(|| Refusal::NoField(visible.unknown(field)))?;
    let ty = &visible.entity.fields[at].ty;
    // which values are the least, or equal
    let compares = *distinct || matches!(function, AggregateFunction::Min | AggregateFunction::Max);
    let aggregate = Aggregate::of(name.clone(), *function, visible.entity, at, *distinct);
    aggregate.filter(|_| !compares || family::has_order(ty)).ok_or_else(|| {
        let (field, ty) = (field.clone(), ty.name.clone());
        GroupRefusal::NoAggregate { field, ty, function: *function, is_distinct: *distinct }.into()
    })
}

/// `[A-Za-z_][A-Za-z0-9_]*`: what `having` reads as a name.
fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.len() <= MAX_NAME_LEN
        && name.starts_with(is_letter)
        && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// Reads every field of what a group is.
fn scope_of(group: &Entity) -> Scope {
    let rights = Rights { read: vec![true; group.fields.len()], ..Rights::default() };
    let entities = HashMap::from([(group.name.clone(), rights)]);
    // every surface serves what a group is
    Scope { entities: Arc::new(entities), ..Scope::default() }
}

/// As of rows; and what the values of a position are made of.
fn binding(
    visible: &Visible<'_>,
    group: &Group,
    request: &GroupRequest,
    cursors: Cursors<'_>,
) -> cursor::Binding {
    let fields = &visible.entity.fields;
    let named = |at: usize| format!("{:?} {}", fields[at].name, fields[at].ty.base_oid);
    let keys: Vec<String> = group.keys.iter().map(|key| named(*key)).collect();
    let of_aggregate = |it: &Aggregate| {
        let distinct = if it.is_distinct { "distinct " } else { "" };
        format!("{} {}({distinct}{})", it.name, it.function.word(), it.field.map(named).unwrap_or_default())
    };
    let aggregates: Vec<String> = group.aggregates.iter().map(of_aggregate).collect();
    let order = |it: &OrderBy| format!("{:?} {}", it.name, if it.descending { "desc" } else { "asc" });
    let order: Vec<String> = request.orderby.iter().map(order).collect();
    let printed = |expr: Option<&Expr>| expr.map(Expr::to_string).unwrap_or_default();
    let parts = [
        "groups",
        visible.entity.name.as_str(),
        &keys.join(","),
        &aggregates.join(","),
        &printed(request.filter.as_ref()),
        &printed(request.having.as_ref()),
        &order.join(","),
        cursors.caller,
    ];
    cursor::Binding::new(cursors.key, &parts)
}
