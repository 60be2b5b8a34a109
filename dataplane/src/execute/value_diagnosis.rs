//! Which fields a write was refused for, where PostgreSQL has named no column. Asked after the error only: a write that is
//! done costs nothing more.

use rowgate_core::problem::Problem;
use rowgate_pg::wire::{Cause, Failure, WriteFailure};
use rowgate_sql::catalog::Entity;
use rowgate_sql::compile::{CompiledWrite, ValueDiagnosis};
use rowgate_sql::rest;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::retry;

/// A better problem than a refusal that names no field; `None`: nothing better is known. Every field
/// that is named was sent, or is worked out from what was sent and may be read.
pub(crate) async fn diagnose(
    caller: &Caller,
    context: &KeyContext,
    compiled: &CompiledWrite,
    failure: &WriteFailure,
) -> Option<Problem> {
    let sqlstate = unnamed(failure)?;
    match judged(caller, context, compiled).await? {
        Some(problem) => Some(problem),
        None if sqlstate.starts_with("22") => {
            Some(rest::problem::worked_out(compiled, sqlstate, may_read(context, &compiled.entity)))
        }
        None => None,
    }
}

/// Whether the key may read a field of the entity, by its position.
pub(crate) fn may_read<'a>(context: &'a KeyContext, entity: &'a Entity) -> impl Fn(usize) -> bool + 'a {
    let scope = context.snapshot.scope(&context.key);
    move |at| scope.entities.get(&entity.name).is_some_and(|rights| rights.read.get(at) == Some(&true))
}

/// The state of an error that is about a value, without the place of the value: a cast to what a column holds, a rule of a
/// domain, or something that the table works out.
fn unnamed(failure: &WriteFailure) -> Option<&str> {
    match failure {
        WriteFailure::Any(Failure::Invalid(Cause { sqlstate: Some(state), parameter: None, .. }))
            if state.starts_with("22") =>
        {
            Some(state)
        }
        // A domain's rule has no table, nor has its NOT NULL a column.
        WriteFailure::Violation(Cause { sqlstate: Some(state), rule: None, column: None, .. })
            if ["23514", "23502"].contains(&state.as_str()) =>
        {
            Some(state)
        }
        _ => None,
    }
}

/// Asks as the key what is wrong with each value by itself: perhaps nothing. `None`: PostgreSQL cannot say, for lack of a right
/// to the schema of a type, or because a domain's own check fails; or there is no memory for the question.
async fn judged(caller: &Caller, context: &KeyContext, compiled: &CompiledWrite) -> Option<Option<Problem>> {
    let Some(probe) = compiled.value_probe() else { return Some(None) };
    let _held = caller.reserve(context, probe.sql.n_bytes()).ok()?;
    let statement = (probe.sql.clone(), probe.shape.clone());
    let page = retry::read(caller, context, false, statement, usize::MAX).await.ok()?;
    let rows = [b"[", &page.json[..], b"]"].concat();
    let diagnoses: Vec<ValueDiagnosis> = serde_json::from_slice(&rows).ok()?;
    Some(rest::problem::diagnosed(&probe, &diagnoses, may_read(context, &compiled.entity)))
}
