//! Writes: which rows a body means, under what the scope may write.

pub(super) mod able;
pub(super) mod delete;
pub(super) mod version;

use std::collections::BTreeSet;
use std::sync::Arc;

use rowgate_core::name::EntityName;
use rowgate_core::problem::{Code, Problem};

use super::told::{another_key, filled_in, forbidden, in_row, needed, not_all};
use super::value::input;
use super::visible::Visible;
use super::{by_key, find};
use crate::catalog::{Catalog, Entity, EntityKind, Field, Filling, Rights, Scope, Way};
use crate::query::{Check, Guard, Insert, Nothing, Predicate, Upsert, Value};
use crate::rest::body::{self, Body, Input, MAX_VALUES, Row};
use crate::text::Bind;
use version::Only;

/// Whether the scope may make rows of the entity at all, whatever the body says.
pub fn may_insert(catalog: &Catalog, scope: &Scope, entity: &EntityName) -> Result<(), Problem> {
    inserting(catalog, scope, entity).map(drop)
}

fn inserting<'a>(
    catalog: &'a Catalog,
    scope: &'a Scope,
    entity: &EntityName,
) -> Result<Visible<'a>, Problem> {
    let visible = find(catalog, scope, entity, Visible::for_write)?;
    if !visible.rights().create.contains(&true) {
        return Err(forbidden(format!("this key may not create rows of {entity}")));
    }
    if visible.entity.ways.insert == Way::Never {
        return Err(able::not_made(visible.entity));
    }
    Ok(visible)
}

/// `POST /{entity}`. A `body` that is none is told to whoever may create rows. `reads_back`: the caller wants the rows as
/// they were stored.
pub fn insert(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    body: Result<Body<'_>, Problem>,
    reads_back: bool,
) -> Result<Insert, Problem> {
    let visible = inserting(catalog, scope, entity)?;
    let rights = visible.rights();
    let body = &body?;
    if body.rows.is_empty() {
        return Err(Problem::new(Code::BadRequest, "the array is empty; send at least one row"));
    }
    let mut named = BTreeSet::new();
    let mut rows = Vec::with_capacity(body.rows.len());
    for (i, row) in body.rows.iter().enumerate() {
        let at = u16::try_from(i).ok().filter(|_| body.is_list);
        let values = values(&visible, row, at).map_err(|problem| in_row(problem, at))?;
        demand(&visible, &values).map_err(|problem| in_row(problem, at))?;
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
        return Err(Problem::new(Code::BadRequest, "the rows have no values; send them one by one"));
    }
    if MAX_VALUES < fields.len().max(1) * rows.len() {
        return Err(body::too_many());
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

/// What the body of a row's address means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// PATCH: fields that are left out stay as they are.
    Merge,
    /// PUT: fields that are left out become their default, or NULL.
    Replace,
}

/// Whether the scope may make or change rows of the entity at all, and the address is that of one, whatever the body says.
pub fn may_upsert(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    only: &Only,
) -> Result<(), Problem> {
    upserting(catalog, scope, entity, key_path, only).map(drop)
}

/// What is written, its key, and whether rows of it may be changed, and made.
type Upserting<'a> = (Visible<'a>, Predicate, (bool, bool));

fn upserting<'a>(
    catalog: &'a Catalog,
    scope: &'a Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
    only: &Only,
) -> Result<Upserting<'a>, Problem> {
    let visible = find(catalog, scope, entity, Visible::for_write)?;
    let rights = visible.rights();
    let (may_update, may_create) = (rights.update.contains(&true), rights.create.contains(&true));
    if !may_update && !may_create {
        return Err(forbidden(format!("this key may neither change nor create rows of {entity}")));
    }
    let may = able(visible.entity, (may_update, may_create), only)?;
    let key = by_key(&visible, key_path)?;
    Ok((visible, key, may))
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
    let (visible, key, (may_update, may_create)) = upserting(catalog, scope, entity, key_path, only)?;
    let rights = visible.rights();
    let body = body?;
    let ([row], false) = (&body.rows[..], body.is_list) else {
        return Err(Problem::new(
            Code::BadRequest,
            "a row's address takes one object with its fields, and no array",
        ));
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
            Some(_) => return Err(another_key(name)),
            None => values.push((at, bind)),
        }
    }
    let expected = version::expected(&visible, sent, only)?;
    let mut set: Vec<(usize, Option<Bind>)> =
        values.iter().map(|(at, bind)| (*at, Some(bind.clone()))).collect();
    if how == How::Replace {
        let is_given = |at: &usize| values.iter().chain(&keys).any(|(field, _)| field == at);
        let absent = (0..visible.entity.fields.len()).filter(|at| !is_given(at));
        set.extend(absent.filter(|at| able::is_replaced(visible.entity, *at)).map(|at| (at, None)));
    }
    let mut upsert = Upsert {
        entity: Arc::clone(visible.entity),
        missing: missing(&visible, &[&values[..], &keys[..]].concat(), true),
        key,
        set: Vec::new(),
        insert: None,
        is_plain: !may_update && *only == Only::Either,
        looks: false,
        holds: false,
        guard: Guard::None,
        returning: if reads_back { visible.fields().map(|(i, _)| i).collect() } else { Vec::new() },
        expected: None,
        // RFC 9110, 9.3.4: the answer to a PUT carries no tag unless the row was stored as it was sent, and its version never is.
        marks: if reads_back && how == How::Merge { visible.marks() } else { Vec::new() },
        nothing: Nothing::NoRow,
        checks,
    };
    if !may_update && expected.is_some() {
        return Err(forbidden(format!("this key may not change rows of {entity}")));
    }
    let field_of = |at: usize| &visible.entity.fields[at];
    if may_update && *only != Only::Absent {
        if let Some((at, _)) = set.iter().find(|(at, _)| !field_of(*at).updatable) {
            return Err(able::worked_out(visible.entity, &field_of(*at).name, "changed"));
        }
        if let Some((at, _)) = set.iter().find(|(at, _)| rights.update.get(*at) != Some(&true)) {
            return Err(not_all(&visible, &set, *at));
        }
        let becomes_null = |(at, bind): &&(usize, Option<Bind>)| {
            let has_default = matches!(field_of(*at).filling, Filling::Default | Filling::Sequence);
            !field_of(*at).takes_null && bind.as_ref().map_or(!has_default, |bind| bind.value.is_none())
        };
        let nulls: Vec<_> = set
            .iter()
            .filter(becomes_null)
            .map(|(at, _)| format!("{:?}", visible.entity.fields[*at].name))
            .collect();
        if !nulls.is_empty() {
            return Err(needed(entity, &nulls));
        }
        if set.is_empty() {
            let what = match upsert.checks.is_empty() {
                true => "the body has no field to change; send at least one",
                false => {
                    "the body has nothing but the key, which the address says; send at least one field to change"
                }
            };
            return Err(Problem::new(Code::BadRequest, what));
        }
        upsert.set = set;
        if visible.entity.ways.update == Way::Itself && is_guarded(&visible) {
            upsert.guard = Guard::Unseen;
        }
    }
    if let Some(expected) = expected {
        // No row is made then, and none is looked for again: what was said about the row is not true.
        (upsert.expected, upsert.nothing) = (Some(expected.versions), expected.nothing);
        return Ok(upsert);
    }
    let may_set = |(at, _): &(usize, Bind)| rights.create.get(*at) == Some(&true) && field_of(*at).insertable;
    let is_generated =
        keys.iter().any(|(at, _)| matches!(field_of(*at).filling, Filling::Database | Filling::Sequence));
    if may_create && *only != Only::Present && !is_generated {
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
                return Err(able::worked_out(visible.entity, &field_of(*at).name, "set in a new row"));
            }
            Some((at, _)) if upsert.set.is_empty() => {
                let name = &visible.entity.fields[*at].name;
                return Err(forbidden(format!("this key may not set the field {name:?} of a new row")));
            }
            Some(_) => {}
        }
    }
    let raises = visible.entity.raises_for_a_second();
    upsert.nothing = match (only, &upsert.insert) {
        (Only::Absent, _) => Nothing::Taken,
        // Without a conflict that it passes over, nothing is what a trigger leaves.
        (_, Some(_)) if upsert.is_plain || raises => Nothing::PassedOver,
        (_, Some(_)) => Nothing::Again,
        (_, None) => Nothing::NoRow,
    };
    upsert.looks = match only {
        Only::Absent => raises && visible.entity.key.iter().all(|at| rights.read.get(*at) == Some(&true)),
        _ => visible.entity.ways.update == Way::Trigger && !upsert.set.is_empty(),
    };
    upsert.holds = upsert.looks && !upsert.set.is_empty() && visible.entity.kind == EntityKind::Table;
    if upsert.holds && is_guarded(&visible) {
        // a row that cannot be held is none that its triggers have passed over
        upsert.guard = Guard::Unseen;
    }
    match upsert.set.is_empty() && upsert.insert.is_none() {
        true if *only == Only::Present => Err(forbidden(format!("this key may not change rows of {entity}"))),
        true if is_generated => Err(Problem::new(
            Code::BadRequest,
            format!("the database gives rows of {entity} their key; make one with POST"),
        )),
        true => Err(forbidden(format!("this key may not create rows of {entity}"))),
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
    only: &Only,
) -> Result<(bool, bool), Problem> {
    let (updates, creates) =
        (may_update && entity.ways.update != Way::Never, may_create && entity.ways.insert != Way::Never);
    let refused =
        |what: &str| Err(Problem::new(Code::BadRequest, format!("rows of {} are {what}", entity.name)));
    match only {
        _ if !updates && !creates => Err(able::not_changed(entity)),
        Only::Present if may_update && !updates => refused("made, but not changed; leave If-Match out"),
        Only::Absent if may_create && !creates => refused("changed, but not made; leave If-None-Match out"),
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
fn values(visible: &Visible<'_>, row: &Row<'_>, in_list: Option<u16>) -> Result<Vec<(usize, Bind)>, Problem> {
    let mut values = Vec::with_capacity(row.len());
    for (name, input) in row {
        let (at, mut bind) = value(visible, name, input)?;
        bind.row = in_list;
        if !visible.entity.fields[at].insertable {
            return Err(able::worked_out(visible.entity, name, "set in a new row"));
        }
        if visible.rights().create.get(at) != Some(&true) {
            return Err(forbidden(format!("this key may not set the field {name:?} of a new row")));
        }
        values.push((at, bind));
    }
    Ok(values)
}

/// One field of a body and what it is to hold, whether this key may set it or not.
fn value(visible: &Visible<'_>, name: &str, input: &Input<'_>) -> Result<(usize, Bind), Problem> {
    let at = visible.written(name)?;
    let field = &visible.entity.fields[at];
    if is_read_only(field) {
        return Err(filled_in(name));
    }
    let mut bind = input::bind(&field.ty, input).map_err(|misfit| {
        Problem::new(Code::InvalidValue, format!("the field {name:?} is {}: {misfit}", field.ty.name))
    })?;
    bind.field = u16::try_from(at).ok();
    Ok((at, bind))
}

/// Every field without which PostgreSQL would refuse the row, as far as this key may set it.
fn demand(visible: &Visible<'_>, values: &[(usize, Bind)]) -> Result<(), Problem> {
    match &missing(visible, values, false)[..] {
        [] => Ok(()),
        missing => Err(needed(&visible.entity.name, missing)),
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
    fields.filter(is_missing).map(|(_, field)| format!("{:?}", field.name)).collect()
}

pub(super) fn is_read_only(field: &Field) -> bool {
    field.filling == Filling::Database || field.column.as_str().starts_with("dl_")
}
