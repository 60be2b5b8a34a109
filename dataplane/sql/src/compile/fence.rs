//! What may raise for a row is worked out behind the conditions of a view, or an error would tell of rows that the view
//! hides. Row-level security needs no such thing: PostgreSQL tries a policy before whatever is not leakproof.

use std::collections::BTreeSet;

use crate::catalog::{Entity, EntityKind};
use crate::query::{Aggregate, Cast, Predicate, Query, Reference, Value};
use crate::request::{AggregateFunction, Function};
use crate::text::Sql;

/// A filter over a view, taken apart.
pub(super) struct Fence {
    /// What may be worked out for rows that the view hides, and what indexes serve.
    pub(super) inside: Option<Predicate>,
    pub(super) outside: Option<Predicate>,
    /// The rows are ordered or grouped by what the view works out, and so are the rows behind a position.
    pub(super) sorts: bool,
    /// What is read from inside, each once.
    pub(super) fields: BTreeSet<usize>,
}

/// `None`: nothing of the filter, the order and the groups tells of a row by raising.
///
/// `security_barrier` would make each page of a view a look at all of its rows, since PostgreSQL takes no order and no limit
/// below it, and serves no decimals by an index, whose operators are not marked leakproof though none of them raises:
/// `docs/decisions/views-fence.md` has the measurements.
pub(super) fn of(query: &Query) -> Option<Fence> {
    let entity = &*query.entity;
    if entity.kind != EntityKind::View {
        return None;
    }
    let parts = match &query.filter {
        Some(Predicate::All(parts)) => parts.as_slice(),
        Some(other) => std::slice::from_ref(other),
        None => &[],
    };
    let sorts = sorts(query);
    let (outside, inside): (Vec<_>, Vec<_>) = parts.iter().cloned().partition(|part| raises(entity, part));
    if outside.is_empty() && !sorts {
        return None;
    }
    let outside = (!outside.is_empty()).then_some(Predicate::All(outside));
    let mut fields = BTreeSet::new();
    let mut add = |field| {
        fields.insert(field);
    };
    query.read_fields(&mut add);
    outside.iter().for_each(|outside| outside.fields(&mut add));
    let inside = (!inside.is_empty()).then_some(Predicate::All(inside));
    Some(Fence { inside, outside, sorts, fields })
}

/// PostgreSQL may sort by a term before it joins what tells which rows the view shows.
fn sorts(query: &Query) -> bool {
    let is_worked_out = |field: usize| query.entity.fields[field].is_worked_out;
    match &query.group {
        Some(group) => {
            // PostgreSQL looks for the row with the least value that is not NULL, as it looks for the first of an order
            let looks_for =
                |it: &Aggregate| matches!(it.function, AggregateFunction::Min | AggregateFunction::Max);
            let sorting = group.aggregates.iter().filter(|it| it.is_distinct || looks_for(it));
            let mut sorted = sorting.filter_map(|it| it.field);
            group.keys.iter().any(|key| is_worked_out(*key)) || sorted.any(is_worked_out)
        }
        None => {
            let mut own = query.order.iter().filter(|term| term.reference.is_none()).map(|term| term.field);
            // PostgreSQL may join a row before what tells which rows the view shows
            own.any(is_worked_out) || query.joined_by().into_iter().any(is_worked_out)
        }
    }
}

/// Writes a relation as `t<alias>`, 0: `t`. Its rows are looked for `by` these fields, and by the flag of those that are hidden: where the
/// view works one of them out, it stands as a sub-select of these and of what else is `read`, which gives the rows that it shows.
pub(super) fn relation(
    sql: &mut Sql,
    entity: &Entity,
    alias: u64,
    by: impl IntoIterator<Item = usize>,
    read: impl FnOnce(&mut BTreeSet<usize>),
) {
    let mut fields: BTreeSet<usize> = by.into_iter().collect();
    let name = |sql: &mut Sql| {
        sql.lit(" t");
        if alias != 0 {
            sql.number(alias);
        }
    };
    fields.extend(entity.hidden_by());
    if !fields.iter().any(|field| entity.fields[*field].is_worked_out) {
        sql.ident(&entity.schema).lit(".").ident(&entity.object);
        return name(sql);
    }
    read(&mut fields);
    for (i, field) in fields.iter().enumerate() {
        sql.lit(if i == 0 { "(select " } else { ", " }).ident(&entity.fields[*field].column);
    }
    sql.lit(" from ").ident(&entity.schema).lit(".").ident(&entity.object).lit(" offset 0)");
    name(sql);
}

/// Whether it may raise by what stands in a row. What PostgreSQL cannot read of a request raises before any row is read, and the
/// operators by which a type is ordered raise for no value.
pub(super) fn raises(entity: &Entity, predicate: &Predicate) -> bool {
    match predicate {
        Predicate::All(parts) | Predicate::Any(parts) => parts.iter().any(|part| raises(entity, part)),
        Predicate::Not(inner) | Predicate::NotTrue(inner) => raises(entity, inner),
        Predicate::Related(related) => {
            related.link.around().iter().any(|field| entity.fields[*field].is_worked_out)
                || related.inner.as_ref().is_some_and(|inner| raises(&related.entity, inner))
        }
        Predicate::Within { .. } => true,
        Predicate::IsNull { value, .. } | Predicate::Is(value) => {
            computes(entity, value) || may_conflict(entity, &[value])
        }
        Predicate::Compare { left, right, .. } => compares(entity, left, right),
        Predicate::OneOf { value, values } => values.iter().any(|other| compares(entity, value, other)),
    }
}

fn compares(entity: &Entity, left: &Value, right: &Value) -> bool {
    computes(entity, left)
        || computes(entity, right)
        || is_cast(entity, left, right)
        || may_conflict(entity, &[left, right])
}

/// Texts of several columns, whose collations may conflict: PostgreSQL finds that out when it compares them.
fn may_conflict(entity: &Entity, values: &[&Value]) -> bool {
    let (mut fields, mut others) = (BTreeSet::new(), Vec::new());
    for value in values {
        match value {
            Value::Referenced(of) => {
                others.extend(of.references.last().map(|last| last.entity.fields[of.field].ty.base_oid));
            }
            _ => value.fields(&mut |field| {
                fields.insert(field);
            }),
        }
    }
    let own = fields.iter().map(|field| entity.fields[*field].ty.base_oid);
    let columns: Vec<u32> = own.chain(others).collect();
    1 < columns.len() && columns.iter().any(|oid| !WITHOUT_COLLATION.contains(oid))
}

/// A decimal beside a float becomes a float, out of whose range it may be.
fn is_cast(entity: &Entity, left: &Value, right: &Value) -> bool {
    let oid = |value: &Value| match value {
        Value::Field(field) => entity.fields[*field].ty.base_oid,
        Value::Bind(bind) => bind.oid,
        Value::Referenced(of) => {
            of.references.last().map_or(0, |last| last.entity.fields[of.field].ty.base_oid)
        }
        _ => 0,
    };
    let is = |one: u32, other: u32| one == NUMERIC && FLOATS.contains(&other);
    let (left, right) = (oid(left), oid(right));
    is(left, right) || is(right, left)
}

/// Whether it may divide by zero, leave a range, or get a length below zero, in the view as well. Recurses no deeper than the parser let terms
/// nest.
fn computes(entity: &Entity, value: &Value) -> bool {
    match value {
        Value::Field(field) => entity.fields[*field].is_worked_out,
        Value::Referenced(of) => {
            let mut around = entity;
            of.references.iter().any(|Reference { link, entity, .. }| {
                let is_worked_out = link.iter().any(|(left, _)| around.fields[*left].is_worked_out);
                around = entity;
                is_worked_out
            }) || around.fields[of.field].is_worked_out
        }
        Value::Bind(_) => false,
        Value::Chain { .. } | Value::Negate(_) | Value::Cast(_, Cast::Integer) => true,
        Value::Cast(inner, Cast::Text | Cast::Utc) => computes(entity, inner),
        Value::Call { function, arguments } => {
            let may = match function {
                Function::Substring | Function::Round | Function::Floor | Function::Ceiling => true,
                Function::Contains
                | Function::StartsWith
                | Function::EndsWith
                | Function::ToLower
                | Function::ToUpper
                | Function::Trim
                | Function::Length
                | Function::IndexOf
                | Function::Concat
                | Function::Year
                | Function::Month
                | Function::Day
                | Function::Hour
                | Function::Minute
                | Function::Second
                | Function::Date
                | Function::Time => false,
            };
            may || arguments.iter().any(|argument| computes(entity, argument))
        }
    }
}

/// `boolean`, `bytea`, whole numbers, floats, decimals, dates and times, and `uuid`.
const WITHOUT_COLLATION: [u32; 15] =
    [16, 17, 20, 21, 23, 700, 701, 1082, 1083, 1114, 1184, 1186, 1266, NUMERIC, 2950];
const NUMERIC: u32 = 1700;
const FLOATS: [u32; 2] = [700, 701];
