//! Writes: which rows a body means, under what the scope may write.

use std::collections::BTreeSet;
use std::sync::Arc;

use rowgate_core::name::EntityName;
use rowgate_core::problem::{Code, Problem};

use super::visible::Visible;
use super::{by_key, guarded, input};
use crate::body::{Body, Row};
use crate::catalog::{Catalog, Field, Filling, Scope};
use crate::query::{Delete, Insert};
use crate::text::Bind;

/// As many values as one statement takes.
const MAX_BINDS: usize = 65_535;

/// `POST /{entity}`. A `body` that is none is told to whoever may create rows. `reads_back`: the caller wants the rows as
/// they were stored.
pub fn insert(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    body: Result<Body, Problem>,
    reads_back: bool,
) -> Result<Insert, Problem> {
    let visible = find(catalog, scope, entity)?;
    let rights = visible.rights();
    if !rights.create.contains(&true) {
        return Err(forbidden(format!("this key may not create rows of {entity}")));
    }
    let body = &body?;
    if body.rows.is_empty() {
        return Err(Problem::new(Code::BadRequest, "the array is empty; send at least one row"));
    }
    let mut named = BTreeSet::new();
    let mut rows = Vec::with_capacity(body.rows.len());
    for (i, row) in body.rows.iter().enumerate() {
        let values = values(&visible, row).map_err(|problem| in_row(problem, body, i))?;
        demand(&visible, &values).map_err(|problem| in_row(problem, body, i))?;
        named.extend(values.iter().map(|(field, _)| *field));
        rows.push(values);
    }
    let fields: Vec<usize> = named.into_iter().collect();
    if MAX_BINDS < fields.len() * rows.len() {
        return Err(Problem::new(
            Code::TooLarge,
            format!("the rows have more than {MAX_BINDS} values; send fewer rows at once"),
        ));
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
    Ok(Insert { entity: Arc::clone(visible.entity), fields, rows, returning })
}

/// `DELETE /{entity}/{pk}/{value}...`
pub fn delete(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
) -> Result<Delete, Problem> {
    let visible = find(catalog, scope, entity)?;
    if !visible.rights().delete {
        return Err(forbidden(format!("this key may not delete rows of {entity}")));
    }
    Ok(Delete { entity: Arc::clone(visible.entity), key: by_key(&visible, key_path)? })
}

fn find<'a>(catalog: &'a Catalog, scope: &'a Scope, name: &EntityName) -> Result<Visible<'a>, Problem> {
    let entity = catalog.entities.get(name).ok_or_else(Problem::entity_not_found)?;
    let visible = Visible::for_write(entity, scope).ok_or_else(Problem::entity_not_found)?;
    guarded(catalog, name)?;
    Ok(visible)
}

/// The values of one row by their fields.
fn values(visible: &Visible<'_>, row: &Row) -> Result<Vec<(usize, Bind)>, Problem> {
    let mut values = Vec::with_capacity(row.len());
    for (name, input) in row {
        let at = visible.written(name)?;
        let field = &visible.entity.fields[at];
        if is_read_only(field) {
            return Err(Problem::new(
                Code::ReadOnlyColumn,
                format!("the field {name:?} is filled in by the database; leave it out"),
            ));
        }
        if visible.rights().create.get(at) != Some(&true) {
            return Err(forbidden(format!("this key may not set the field {name:?} of a new row")));
        }
        let mut bind = input::bind(&field.ty, input).map_err(|misfit| {
            Problem::new(Code::InvalidValue, format!("the field {name:?} is {}: {misfit}", field.ty.name))
        })?;
        bind.field = u16::try_from(at).ok();
        values.push((at, bind));
    }
    Ok(values)
}

/// Every field without which PostgreSQL would refuse the row, as far as this key may set it.
fn demand(visible: &Visible<'_>, values: &[(usize, Bind)]) -> Result<(), Problem> {
    let value = |at: usize| values.iter().find(|(field, _)| *field == at).map(|(_, bind)| bind);
    let is_missing = |(at, field): (usize, &Field)| {
        let may = visible.rights().create.get(at) == Some(&true);
        let missing = match value(at) {
            None => may && field.filling == Filling::Caller,
            Some(bind) => bind.value.is_none(),
        };
        !field.nullable && missing
    };
    let fields = visible.entity.fields.iter().enumerate();
    let missing: Vec<_> =
        fields.filter(|it| is_missing(*it)).map(|(_, field)| format!("{:?}", field.name)).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Problem::new(
            Code::InvalidValue,
            format!(
                "a row of {} needs a value that is not null for {}",
                visible.entity.name,
                missing.join(", ")
            ),
        )),
    }
}

fn is_read_only(field: &Field) -> bool {
    field.filling == Filling::Database || field.column.as_str().starts_with("dl_")
}

fn forbidden(what: String) -> Problem {
    Problem::new(Code::Forbidden, what)
}

/// Says which row of a list it is about.
fn in_row(problem: Problem, body: &Body, i: usize) -> Problem {
    if body.is_list { problem.detail(format!("in item {} of the array", i + 1)) } else { problem }
}
