//! Calls: which values a body gives to the parameters of a routine.

use std::sync::Arc;

use rowgate_core::name::EntityName;
use rowgate_core::nearest::nearest;

use super::refusal::{CallRefusal, Refusal, Unknown, Valued};
use super::value::input;
use super::{exists, open};
use crate::catalog::{Catalog, Entity, Mode, Param, Routine, Scope};
use crate::query::{Argument, Call};
use crate::request::Body;

/// Whether the scope may call the entity, which then is no table. What may not be called is not there.
pub(super) fn may(entity: &Entity, scope: &Scope) -> bool {
    scope.serves(entity)
        && entity.routine.is_some()
        && scope.entities.get(&entity.name).is_some_and(|rights| rights.execute)
}

/// Whether the scope may call the entity now, whatever the body says.
pub fn may_call(catalog: &Catalog, scope: &Scope, entity: &EntityName) -> Result<(), Refusal> {
    called(catalog, scope, entity).map(drop)
}

fn called<'a>(
    catalog: &'a Catalog,
    scope: &Scope,
    entity: &EntityName,
) -> Result<(&'a Arc<Entity>, &'a Routine), Refusal> {
    exists(scope, entity)?;
    let found = catalog.entities.get(entity).filter(|found| may(found, scope));
    let found = found.ok_or(Refusal::NoEntity)?;
    let routine = found.routine.as_ref().ok_or(Refusal::NoEntity)?;
    open(catalog, found)?;
    Ok((found, routine))
}

/// A call of a routine. `body`: `None` where nothing was sent. `keeps_rows`: the caller wants what it gives.
pub fn call(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    body: Option<Body<'_>>,
    keeps_rows: bool,
) -> Result<Call, Refusal> {
    let (found, routine) = called(catalog, scope, entity)?;
    let row = match body {
        None => Vec::new(),
        Some(Body { mut rows, is_list: false }) if rows.len() == 1 => rows.remove(0),
        Some(_) => {
            return Err(CallRefusal::NoObject.into());
        }
    };
    if let Some((name, _)) = row.iter().find(|(name, _)| given(routine).all(|(_, param)| param.name != *name))
    {
        return Err(unknown(routine, name).into());
    }
    let mut arguments = Vec::with_capacity(routine.params.len());
    let mut missing = Vec::new();
    for (at, param) in routine.params.iter().enumerate() {
        if param.mode == Mode::Out {
            arguments.push(Argument { param: at, value: None });
            continue;
        }
        match row.iter().find(|(name, _)| *name == param.name) {
            None if param.has_default => {}
            None => missing.push(param.name.clone()),
            Some((name, input)) => {
                let mut bind = input::bind(&param.ty, input).map_err(|refusal| {
                    CallRefusal::Value(Valued { name: name.clone(), ty: param.ty.name.clone(), refusal })
                })?;
                bind.field = u16::try_from(at).ok();
                arguments.push(Argument { param: at, value: Some(bind) });
            }
        }
    }
    if !missing.is_empty() {
        return Err(CallRefusal::Missing(missing).into());
    }
    Ok(Call { entity: Arc::clone(found), arguments, keeps_rows })
}

/// The parameters that a body may name.
fn given(routine: &Routine) -> impl Iterator<Item = (usize, &Param)> {
    routine.params.iter().enumerate().filter(|(_, param)| param.mode != Mode::Out)
}

fn unknown(routine: &Routine, name: &str) -> CallRefusal {
    let nearest = nearest(name, given(routine).map(|(_, param)| param.name.as_str()));
    CallRefusal::NoParameter(Unknown { name: name.to_owned(), nearest: nearest.map(str::to_owned) })
}
