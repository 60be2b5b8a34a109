//! Calls: which values a body gives to the parameters of a routine.

use std::sync::Arc;

use rowgate_core::name::EntityName;
use rowgate_core::nearest::nearest;
use rowgate_core::problem::{Code, Problem};

use super::value::input;
use super::{not_found, open};
use crate::catalog::{Catalog, Entity, Mode, Param, Routine, Scope};
use crate::query::{Argument, Call};
use crate::rest::body::Body;

/// Whether the scope may call the entity, which then is no table. What may not be called is not there.
pub(super) fn may(entity: &Entity, scope: &Scope) -> bool {
    entity.rest
        && entity.routine.is_some()
        && scope.entities.get(&entity.name).is_some_and(|rights| rights.execute)
}

/// Whether the scope may call the entity now, whatever the body says.
pub fn may_call(catalog: &Catalog, scope: &Scope, entity: &EntityName) -> Result<(), Problem> {
    called(catalog, scope, entity).map(drop)
}

fn called<'a>(
    catalog: &'a Catalog,
    scope: &Scope,
    entity: &EntityName,
) -> Result<(&'a Arc<Entity>, &'a Routine), Problem> {
    let found = catalog.entities.get(entity).filter(|found| may(found, scope));
    let not_found = || not_found(catalog, scope, entity.as_str());
    let found = found.ok_or_else(not_found)?;
    let routine = found.routine.as_ref().ok_or_else(not_found)?;
    open(catalog, found)?;
    Ok((found, routine))
}

/// `POST /{entity}` where a routine stands behind it. `body`: `None` where nothing was sent. `keeps_rows`: the caller wants
/// what it gives.
pub fn call(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    body: Result<Option<Body>, Problem>,
    keeps_rows: bool,
) -> Result<Call, Problem> {
    let (found, routine) = called(catalog, scope, entity)?;
    let row = match body? {
        None => Vec::new(),
        Some(Body { mut rows, is_list: false }) if rows.len() == 1 => rows.remove(0),
        Some(_) => {
            let what = format!("a call of {entity} takes one object with its parameters, not an array");
            return Err(Problem::new(Code::BadRequest, what));
        }
    };
    if let Some((name, _)) = row.iter().find(|(name, _)| given(routine).all(|(_, param)| param.name != *name))
    {
        return Err(unknown(entity, routine, name));
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
            None => missing.push(format!("{:?}", param.name)),
            Some((name, input)) => {
                let mut bind = input::bind(&param.ty, input).map_err(|misfit| {
                    let what = format!("the parameter {name:?} is {}: {misfit}", param.ty.name);
                    Problem::new(Code::InvalidValue, what)
                })?;
                bind.field = u16::try_from(at).ok();
                arguments.push(Argument { param: at, value: Some(bind) });
            }
        }
    }
    if !missing.is_empty() {
        let what = format!("a call of {entity} needs a value for {}; null is one", missing.join(", "));
        return Err(Problem::new(Code::InvalidValue, what));
    }
    Ok(Call { entity: Arc::clone(found), arguments, keeps_rows })
}

/// The parameters that a body may name.
fn given(routine: &Routine) -> impl Iterator<Item = (usize, &Param)> {
    routine.params.iter().enumerate().filter(|(_, param)| param.mode != Mode::Out)
}

fn unknown(entity: &EntityName, routine: &Routine, name: &str) -> Problem {
    let shown: String = name.chars().take(64).collect();
    let problem = Problem::new(Code::UnknownField, format!("{entity} has no parameter {shown:?}"));
    match nearest(name, given(routine).map(|(_, param)| param.name.as_str())) {
        Some(near) => problem.detail(format!("did you mean {near:?}?")),
        None => problem,
    }
}
