//! Where rows are, and which methods they answer.

use rowgate_core::name::EntityName;
use rowgate_core::problem::Problem;

use crate::catalog::{Catalog, Entity, Scope, WriteMethod};
use crate::resolve::{self, Refusal, Visible};

/// What follows the address of an entity in that of one of its rows; `None` where the scope may not read the fields of the
/// key, or the entity has no rows.
#[must_use]
pub fn key_path(catalog: &Catalog, scope: &Scope, entity: &EntityName) -> Option<String> {
    let visible = resolve::find(catalog, scope, entity, Visible::of).ok()?;
    let key = &visible.entity.key;
    let may_read = |at: &usize| visible.fields().any(|(field, _)| field == *at);
    (!key.is_empty() && key.iter().all(may_read)).then(|| key_pattern(visible.entity))
}

/// `/{key field}/{value}` of each field of the key.
pub(super) fn key_pattern(entity: &Entity) -> String {
    entity.key.iter().map(|&at| format!("/{}/{{value}}", entity.fields[at].name)).collect()
}

/// The methods that an entity, or a row of it, answers, where these are fewer than of others and this scope may know it.
#[must_use]
pub fn allowed(catalog: &Catalog, scope: &Scope, entity: &EntityName, of_row: bool) -> Option<&'static str> {
    let visible = match resolve::find(catalog, scope, entity, Visible::for_write) {
        Ok(visible) => visible,
        // for who may call it
        Err(Refusal::OnlyCalled) => return Problem::only_called().allow,
        Err(_) => return None,
    };
    match of_row {
        true => allow(visible.entity),
        false => {
            (visible.entity.write_support.insert == WriteMethod::Unsupported).then_some(Problem::ONLY_READ)
        }
    }
}

/// The methods that a row answers, where PostgreSQL cannot do all of them.
pub(super) fn allow(entity: &Entity) -> Option<&'static str> {
    let changes = entity.write_support.update != WriteMethod::Unsupported
        || entity.write_support.insert != WriteMethod::Unsupported;
    let deletes = entity.write_support.delete != WriteMethod::Unsupported
        && entity.version().is_none()
        && !entity.keeps_rows;
    match (changes, deletes) {
        (true, true) => None,
        (true, false) => Some(Problem::KEPT),
        (false, true) => Some("GET, HEAD, DELETE, OPTIONS"),
        (false, false) => Some(Problem::ONLY_READ),
    }
}
