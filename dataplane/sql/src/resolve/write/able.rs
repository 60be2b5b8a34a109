//! What PostgreSQL cannot write, whoever asks: not to this view, not to this field of it, or no row at all.

use rowgate_core::name::EntityName;
use rowgate_core::problem::{Code, Problem};

use super::is_read_only;
use crate::catalog::{Catalog, Entity, Scope, Way};
use crate::resolve::find;
use crate::resolve::visible::Visible;

/// The methods that an entity, or a row of it, answers, where these are fewer than of others and this scope may know it.
#[must_use]
pub fn allowed(catalog: &Catalog, scope: &Scope, entity: &EntityName, of_row: bool) -> Option<&'static str> {
    let visible = match find(catalog, scope, entity, Visible::for_write) {
        Ok(visible) => visible,
        // A procedure, for who may call it.
        Err(problem) => return problem.allow,
    };
    match of_row {
        true => visible.entity.allowed(),
        false => (visible.entity.ways.insert == Way::Never).then_some(Problem::ONLY_READ),
    }
}

pub(crate) fn not_made(entity: &Entity) -> Problem {
    unwritable(entity, "no row can be made in", "INSERT", Problem::ONLY_READ)
}

/// Neither changed nor made.
pub(crate) fn not_changed(entity: &Entity) -> Problem {
    unwritable(entity, "no row can be changed in", "UPDATE", entity.allowed().unwrap_or(Problem::ONLY_READ))
}

pub(crate) fn not_deleted(entity: &Entity) -> Problem {
    unwritable(entity, "no row can be deleted from", "DELETE", entity.allowed().unwrap_or(Problem::ONLY_READ))
}

fn unwritable(entity: &Entity, what: &str, event: &str, allow: &'static str) -> Problem {
    let what = format!(
        "{what} the view {}: PostgreSQL cannot do it by itself; give the view an INSTEAD OF {event} trigger, or write to a table under it",
        entity.name
    );
    Problem { allow: Some(allow), ..Problem::new(Code::MethodNotAllowed, what) }
}

/// A field that is sent, and is none of those that the view passes on, or hands to a trigger, with this command.
pub(crate) fn worked_out(entity: &Entity, name: &str, verb: &str) -> Problem {
    let what = format!(
        "the field {name:?} is worked out by the view {}, and cannot be {verb}; leave it out",
        entity.name
    );
    Problem::new(Code::ReadOnlyColumn, what)
}

/// Whether a PUT that changes a row sets the field, at this position, named or not.
pub(crate) fn is_replaced(entity: &Entity, at: usize) -> bool {
    let field = &entity.fields[at];
    field.updatable && !is_read_only(field) && !entity.flags.contains(&at)
}
