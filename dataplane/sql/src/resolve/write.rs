//! Writes: which rows a body means, under what the scope may write.

pub(super) mod delete;
pub(super) mod version;

use std::collections::BTreeSet;
use std::sync::Arc;

use rowgate_core::name::EntityName;

use super::refusal::{Refusal, Right, RowWrite, Valued, WriteRefusal};
use super::value::input;
use super::visible::Visible;
use super::{by_key, find};
use crate::catalog::{Catalog, Entity, EntityKind, Field, Filling, Rights, Scope, WriteMethod};
use crate::query::{Check, Guard, Insert, NoRowReason, Predicate, Upsert, Value};
use crate::request::{Body, Input, MAX_VALUES, Row};
use crate::text::Bind;
use version::Precondition;

/// Whether the scope may make rows of the entity at all, whatever the body says.
pub fn may_insert(catalog: &Catalog, scope: &Scope, entity: &EntityName) -> Result<(), Refusal> {
    inserting(catalog, scope, entity).map(drop)
}

fn inserting<'a>(
    catalog: &'a Catalog,
    scope: &'a Scope,
    entity: &EntityName,
) -> Result<Visible<'a>, Refusal> {
    let visible = find(catalog, scope, entity, Visible::for_write)?;
    if !visible.rights().create.contains(&true) {
        return Err(WriteRefusal::MayNot(Right::Create).into());
    }
    if visible.entity.write_support.insert == WriteMethod::Unsupported {
        return Err(WriteRefusal::Unwritable(RowWrite::Make).into());
    }
    Ok(visible)
}

/// Rows to be made. `reads_back`: the caller wants the rows as they were stored.
pub fn insert(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    body: &Body<'_>,
    reads_back: bool,
) -> Result<Insert, Refusal> {
    let visible = inserting(catalog, scope, entity)?;
    let rights = visible.rights();
    if body.rows.is_empty() {
        return Err(WriteRefusal::NoRows.into());
    }
    let mut named = BTreeSet::new();
    let mut rows = Vec::with_capacity(body.rows.len());
    for (i, row) in body.rows.iter().enumerate() {
        let at = u16::try_from(i).ok().filter(|_| body.is_list);
        let values = values(&visible, row, at).map_err(|refusal| in_row(refusal, at))?;
        demand(&visible, &values).map_err(|refusal| in_row(refusal, at))?;
        named.extend(values.iter().map(|(field, _)| *field));
        rows.push(values);
    }
    if named.is_empty() && 1 < rows.len() {
        // Rows without a value are said by a default, of a field that this key may set.
        let mut fields = visible.entity.fields.iter().enumerate();
        let may_set = |at: usize| rights.create.get(at) == Some(&true);
        let found = fields.find(|(at, field)| may_set(*at) && field.insertable && !is_read_only(field));
        named.extend(found.map(|(at, _)| at));
    }
    let fields: Vec<usize> = named.into_iter().collect();
    if fields.is_empty() && 1 < rows.len() {
        return Err(WriteRefusal::NoValues.into());
    }
    if MAX_VALUES < fields.len().max(1) * rows.len() {
        return Err(WriteRefusal::TooManyValues.into());
    }
    let aligned = |values: Vec<(usize, Bind)>| -> Vec<Option<Bind>> {
        let mut slots = vec![None; fields.len()];
        for (field, bind) in values {
            let at = fields.binary_search(&field).expect("every field was noted");
            slots[at] = Some(bind);
        }
        slots
    };
    let rows = rows.into_iter().map(aligned).collect();
    let returning = if reads_back { visible.fields().map(|(i, _)| i).collect() } else { Vec::new() };
    let marks = if reads_back && !body.is_list { visible.marks() } else { Vec::new() };
    Ok(Insert { entity: Arc::clone(visible.entity), fields, rows, returning, marks })
}

/// What becomes of the fields that a write leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpsertMode {
    /// Fields that are left out stay as they are.
    Merge,
    /// Fields that are left out become their default, or NULL.
    Replace,
}

/// Whether the scope may make or change rows of the entity at all, and the key names one, whatever the body says.
pub fn may_upsert(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    precondition: &Precondition,
) -> Result<(), Refusal> {
    upserting(catalog, scope, entity, key_path, precondition).map(drop)
}

/// What is written, its key, and whether rows of it may be changed, and made.
type Upserting<'a> = (Visible<'a>, Predicate, (bool, bool));

fn upserting<'a>(
    catalog: &'a Catalog,
    scope: &'a Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    precondition: &Precondition,
) -> Result<Upserting<'a>, Refusal> {
    let visible = find(catalog, scope, entity, Visible::for_write)?;
    let rights = visible.rights();
    let (may_update, may_create) = (rights.update.contains(&true), rights.create.contains(&true));
    if !may_update && !may_create {
        return Err(WriteRefusal::MayNot(Right::CreateOrUpdate).into());
    }
    let may = able(visible.entity, (may_update, may_create), precondition)?;
    let key = by_key(&visible, key_path)?;
    Ok((visible, key, may))
}

/// One row to be changed, or made where there is none.
pub fn upsert(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    body: &Body<'_>,
    (mode, precondition, reads_back): (UpsertMode, &Precondition, bool),
) -> Result<Upsert, Refusal> {
    let (visible, key, (may_update, may_create)) = upserting(catalog, scope, entity, key_path, precondition)?;
    let rights = visible.rights();
    let ([row], false) = (&body.rows[..], body.is_list) else {
        return Err(WriteRefusal::NoObject.into());
    };
    let keys = key_binds(&key);
    let mut values = Vec::with_capacity(row.len());
    let (version, mut sent, mut checks) = (visible.entity.version(), None, Vec::new());
    for (name, input) in row {
        if version.is_some() && visible.written(name).ok() == version {
            sent = Some(input);
            continue;
        }
        let (at, bind) = value(&visible, name, input)?;
        match keys.iter().find(|(field, _)| *field == at) {
            // A row that was read may be sent back whole.
            Some((_, there)) if there.value == bind.value => {}
            Some((_, there)) if bind.value.is_some() => {
                checks.push(Check::Same { field: at, path: there.clone(), body: bind });
            }
            Some(_) => return Err(WriteRefusal::AnotherKey(name.clone()).into()),
            None => values.push((at, bind)),
        }
    }
    let expected = version::expected(&visible, sent, precondition).map_err(WriteRefusal::from)?;
    let mut set: Vec<(usize, Option<Bind>)> =
        values.iter().map(|(at, bind)| (*at, Some(bind.clone()))).collect();
    if mode == UpsertMode::Replace {
        let is_given = |at: &usize| values.iter().chain(&keys).any(|(field, _)| field == at);
        let absent = (0..visible.entity.fields.len()).filter(|at| !is_given(at));
        set.extend(absent.filter(|at| is_replaced(visible.entity, *at)).map(|at| (at, None)));
    }
    let mut upsert = Upsert {
        entity: Arc::clone(visible.entity),
        missing: missing(&visible, &[&values[..], &keys[..]].concat(), true),
        key,
        set: Vec::new(),
        insert: None,
        is_plain: !may_update && *precondition == Precondition::Either,
        looks: false,
        holds: false,
        guard: Guard::None,
        returning: if reads_back { visible.fields().map(|(i, _)| i).collect() } else { Vec::new() },
        expected: None,
        // A row that is replaced is not stored as it was sent: its version never is (RFC 9110, 9.3.4).
        marks: if reads_back && mode == UpsertMode::Merge { visible.marks() } else { Vec::new() },
        no_row: NoRowReason::NotFound,
        checks,
    };
    if !may_update && expected.is_some() {
        return Err(WriteRefusal::MayNot(Right::Update).into());
    }
    let field_of = |at: usize| &visible.entity.fields[at];
    if may_update && *precondition != Precondition::Absent {
        if let Some((at, _)) = set.iter().find(|(at, _)| !field_of(*at).updatable) {
            let name = field_of(*at).name.clone();
            return Err(WriteRefusal::WorkedOut(name, RowWrite::Change).into());
        }
        if let Some((at, _)) = set.iter().find(|(at, _)| rights.update.get(*at) != Some(&true)) {
            return Err(WriteRefusal::MayNot(not_all(&visible, &set, *at)).into());
        }
        let becomes_null = |(at, bind): &&(usize, Option<Bind>)| {
            let has_default = matches!(field_of(*at).filling, Filling::Default | Filling::Sequence);
            !field_of(*at).takes_null && bind.as_ref().map_or(!has_default, |bind| bind.value.is_none())
        };
        let nulls: Vec<_> =
            set.iter().filter(becomes_null).map(|(at, _)| field_of(*at).name.clone()).collect();
        if !nulls.is_empty() {
            return Err(WriteRefusal::Needed(nulls).into());
        }
        if set.is_empty() {
            return Err(WriteRefusal::NothingToSet { has_key: !upsert.checks.is_empty() }.into());
        }
        upsert.set = set;
        if visible.entity.write_support.update == WriteMethod::Direct && is_guarded(&visible) {
            upsert.guard = Guard::Unseen;
        }
    }
    if let Some(expected) = expected {
        // No row is made then, and none is looked for again: what was said about the row is not true.
        (upsert.expected, upsert.no_row) = (Some(expected.versions), expected.no_row);
        return Ok(upsert);
    }
    let may_set = |(at, _): &(usize, Bind)| rights.create.get(*at) == Some(&true) && field_of(*at).insertable;
    let is_generated =
        keys.iter().any(|(at, _)| matches!(field_of(*at).filling, Filling::Database | Filling::Sequence));
    if may_create && *precondition != Precondition::Present && !is_generated {
        let all = [keys, values].concat();
        match all.iter().find(|it| !may_set(it)) {
            None => {
                let rounded = all.iter().filter(|(at, _)| field_of(*at).rounds_to.is_some());
                let rounded = rounded.filter(|(at, _)| visible.entity.key.contains(at));
                upsert
                    .checks
                    .extend(rounded.map(|(at, bind)| Check::Kept { field: *at, path: bind.clone() }));
                upsert.insert = Some(all);
            }
            Some((at, _)) if upsert.set.is_empty() && !field_of(*at).insertable => {
                let name = field_of(*at).name.clone();
                return Err(WriteRefusal::WorkedOut(name, RowWrite::Make).into());
            }
            Some((at, _)) if upsert.set.is_empty() => {
                return Err(WriteRefusal::MayNot(Right::Set(field_of(*at).name.clone())).into());
            }
            Some(_) => {}
        }
    }
    let raises = visible.entity.raises_for_a_second();
    upsert.no_row = match (precondition, &upsert.insert) {
        (Precondition::Absent, _) => NoRowReason::Taken,
        // Without a conflict that it passes over, nothing is what a trigger leaves.
        (_, Some(_)) if upsert.is_plain || raises => NoRowReason::PassedOver,
        (_, Some(_)) => NoRowReason::Again,
        (_, None) => NoRowReason::NotFound,
    };
    upsert.looks = match precondition {
        Precondition::Absent => {
            raises && visible.entity.key.iter().all(|at| rights.read.get(*at) == Some(&true))
        }
        _ => visible.entity.write_support.update == WriteMethod::Trigger && !upsert.set.is_empty(),
    };
    upsert.holds = upsert.looks && !upsert.set.is_empty() && visible.entity.kind == EntityKind::Table;
    if upsert.holds && is_guarded(&visible) {
        // a row that cannot be held is none that its triggers have passed over
        upsert.guard = Guard::Unseen;
    }
    match upsert.set.is_empty() && upsert.insert.is_none() {
        true if *precondition == Precondition::Present => Err(WriteRefusal::MayNot(Right::Update).into()),
        true if is_generated => Err(WriteRefusal::KeyIsGenerated.into()),
        true => Err(WriteRefusal::MayNot(Right::Create).into()),
        false => Ok(upsert),
    }
}

/// Whether policies may keep the key from rows that it reads. What hides rows from reads is no policy's doing.
pub(super) fn is_guarded(visible: &Visible<'_>) -> bool {
    let entity = visible.entity;
    let reads = |at: &usize| visible.rights().read.get(*at) == Some(&true);
    entity.hides && entity.hidden_by().iter().chain(&entity.key).all(reads)
}

/// Which of both can be done, of those that the key `may`.
fn able(
    entity: &Entity,
    (may_update, may_create): (bool, bool),
    precondition: &Precondition,
) -> Result<(bool, bool), WriteRefusal> {
    let (updates, creates) = (
        may_update && entity.write_support.update != WriteMethod::Unsupported,
        may_create && entity.write_support.insert != WriteMethod::Unsupported,
    );
    match precondition {
        _ if !updates && !creates => Err(WriteRefusal::Unwritable(RowWrite::Change)),
        Precondition::Present if may_update && !updates => Err(WriteRefusal::Precondition(RowWrite::Change)),
        Precondition::Absent if may_create && !creates => Err(WriteRefusal::Precondition(RowWrite::Make)),
        _ => Ok((updates, creates)),
    }
}

fn key_binds(key: &Predicate) -> Vec<(usize, Bind)> {
    let Predicate::All(conditions) = key else { return Vec::new() };
    let bind = |condition: &Predicate| match condition {
        Predicate::Compare { left: Value::Field(at), right: Value::Bind(bind), .. } => {
            Some((*at, bind.clone()))
        }
        _ => None,
    };
    conditions.iter().filter_map(bind).collect()
}

/// The values of one row by their fields. `in_list`: where the row stands, among several.
fn values(
    visible: &Visible<'_>,
    row: &Row<'_>,
    in_list: Option<u16>,
) -> Result<Vec<(usize, Bind)>, WriteRefusal> {
    let mut values = Vec::with_capacity(row.len());
    for (name, input) in row {
        let (at, mut bind) = value(visible, name, input)?;
        bind.row = in_list;
        if !visible.entity.fields[at].insertable {
            return Err(WriteRefusal::WorkedOut(name.clone(), RowWrite::Make));
        }
        if visible.rights().create.get(at) != Some(&true) {
            return Err(WriteRefusal::MayNot(Right::Set(name.clone())));
        }
        values.push((at, bind));
    }
    Ok(values)
}

/// One field of a body and what it is to hold, whether this key may set it or not.
fn value(visible: &Visible<'_>, name: &str, input: &Input<'_>) -> Result<(usize, Bind), WriteRefusal> {
    let at = visible.written(name)?;
    let field = &visible.entity.fields[at];
    if is_read_only(field) {
        return Err(WriteRefusal::FilledIn(name.to_owned()));
    }
    let mut bind = input::bind(&field.ty, input).map_err(|refusal| {
        WriteRefusal::Value(Valued { name: name.to_owned(), ty: field.ty.name.clone(), refusal })
    })?;
    bind.field = u16::try_from(at).ok();
    Ok((at, bind))
}

/// Every field without which PostgreSQL would refuse the row, as far as this key may set it.
fn demand(visible: &Visible<'_>, values: &[(usize, Bind)]) -> Result<(), WriteRefusal> {
    match missing(visible, values, false) {
        missing if missing.is_empty() => Ok(()),
        missing => Err(WriteRefusal::Needed(missing)),
    }
}

/// Names of the fields of a new row that need a value and have none. `whole`: those too that this key may not set, but
/// knows.
fn missing(visible: &Visible<'_>, values: &[(usize, Bind)], whole: bool) -> Vec<String> {
    let value = |at: usize| values.iter().find(|(field, _)| *field == at).map(|(_, bind)| bind);
    let Rights { read, create, .. } = visible.rights();
    let is_missing = |(at, field): &(usize, &Field)| {
        let may = create.get(*at) == Some(&true) || whole && read.get(*at) == Some(&true);
        let missing = match value(*at) {
            None => may && field.filling == Filling::Caller,
            Some(bind) => bind.value.is_none(),
        };
        !field.takes_null && missing
    };
    let fields = visible.entity.fields.iter().enumerate();
    fields.filter(is_missing).map(|(_, field)| field.name.clone()).collect()
}

fn in_row(refusal: WriteRefusal, at: Option<u16>) -> Refusal {
    match at {
        Some(at) => Refusal::InRow(at, Box::new(refusal)),
        None => refusal.into(),
    }
}

/// The right for which a write that sets these fields is refused, `first` being one of those that the scope may not change. A
/// field that it does not know is one that replacing the row has added.
fn not_all(visible: &Visible<'_>, set: &[(usize, Option<Bind>)], first: usize) -> Right {
    let Rights { update, .. } = visible.rights();
    let hidden = |at: &usize| update.get(*at) != Some(&true) && !visible.knows(*at);
    match set.iter().any(|(at, _)| hidden(at)) {
        true => Right::SetAll,
        false => Right::Change(visible.entity.fields[first].name.clone()),
    }
}

/// Whether a write that replaces a row sets the field, at this position, named or not.
fn is_replaced(entity: &Entity, at: usize) -> bool {
    let field = &entity.fields[at];
    field.updatable && !is_read_only(field) && !entity.flags.contains(&at)
}

pub(super) fn is_read_only(field: &Field) -> bool {
    field.filling == Filling::Database || field.column.as_str().starts_with("dl_")
}
