//! Which Tenant takes up a retained database: the one of its namespace and name, one of its namespace that names its id,
//! or the one that the platform team handed it to. Every other Tenant gets the same message as for any taken name.

use rowgate_core::name::Ulid;
use rowgate_crds::{Database, Reason};
use rowgate_pg::control::tenants::{Phase, Record};

use super::PassError;
use crate::source::ObjectRef;
use crate::status::TenantState;

/// The row that a Tenant without one takes up; `None`: it gets a new one. `old`: the row that [`named`] says where `spec`
/// names one, or else the one of the slug. `object_remains`: whether the object of a row is there still, being deleted.
pub(super) fn claim(
    state: &TenantState,
    spec: &Database,
    old: Option<Record>,
    object_remains: impl FnOnce(&Record) -> bool,
) -> Result<Option<Record>, PassError> {
    let Some(wanted) = &spec.adopt_retained else {
        let Some(old) = old else { return Ok(None) };
        if !is_for(&old, &state.object) || old.handed_to.is_some() {
            return Err(slug_is_taken(state));
        }
        return of_own_namespace(state, spec, old, object_remains);
    };
    let Some(old) = old.filter(|old| is_for(old, &state.object)) else {
        let message = format!(
            "no database {wanted} is retained for Tenant {}/{}: it was retained in another namespace and is not handed to this Tenant, or it does not exist; ask the platform team to hand it over, or delete this Tenant and create it without \
             spec.database.adoptRetained",
            state.object.namespace, state.object.name
        );
        return Err(PassError::Refused(Reason::NotRetained, message));
    };
    if old.slug != state.slug {
        let message = format!(
            "the retained database {wanted} belongs to the slug {}; delete this Tenant and create it with spec.slug: {}",
            old.slug, old.slug
        );
        return Err(PassError::Refused(Reason::InvalidSpec, message));
    }
    take_up(spec, old, object_remains)
}

/// For a Tenant of the same namespace; the Event `DatabaseRetained` says the rest.
fn of_own_namespace(
    state: &TenantState,
    spec: &Database,
    old: Record,
    object_remains: impl FnOnce(&Record) -> bool,
) -> Result<Option<Record>, PassError> {
    if old.name == state.object.name {
        return take_up(spec, old, object_remains);
    }
    let message = match object_remains(&old) {
        true => deletion_pending(&old),
        false => format!(
            "the slug {} belongs to the database that Tenant {} of this namespace left behind; to adopt it, set \
             spec.database.adoptRetained: {}, else delete this Tenant and create it with another spec.slug",
            old.slug, old.name, old.id
        ),
    };
    Err(PassError::Refused(Reason::SlugTaken, message))
}

fn take_up(
    spec: &Database,
    old: Record,
    object_remains: impl FnOnce(&Record) -> bool,
) -> Result<Option<Record>, PassError> {
    if object_remains(&old) {
        return Err(PassError::Refused(Reason::SlugTaken, deletion_pending(&old)));
    }
    if old.dropping {
        return Err(is_being_dropped(&old));
    }
    if let Some(name) = spec.name.as_ref().filter(|name| **name != old.database) {
        let message = format!(
            "the database that is retained for this Tenant is {}, not {name}; delete this Tenant and create it without \
             spec.database.name",
            old.database
        );
        return Err(PassError::Refused(Reason::InvalidSpec, message));
    }
    Ok(Some(old))
}

/// For a Tenant that is allowed to know of the database.
pub(super) fn is_being_dropped(old: &Record) -> PassError {
    let message = format!(
        "the database {} of the slug {} is being dropped; afterwards this Tenant gets a new one",
        old.database, old.slug
    );
    PassError::Refused(Reason::SlugTaken, message)
}

fn deletion_pending(old: &Record) -> String {
    format!(
        "the slug {} belongs to Tenant {}/{}, which is being deleted; wait until it is gone, or delete this one and create it with another spec.slug",
        old.slug, old.namespace, old.name
    )
}

/// Whether a row is retained for `object`: by its namespace, or because it was handed to it.
fn is_for(old: &Record, object: &ObjectRef) -> bool {
    let is_its = match &old.handed_to {
        Some((namespace, name)) => *namespace == object.namespace && *name == object.name,
        None => old.namespace == object.namespace,
    };
    old.phase == Phase::Retained && is_its
}

/// The row that a Tenant asks for by its id; `None`: it asks for none, or for what is no id.
pub(super) fn named(spec: &Database) -> Option<Ulid> {
    spec.adopt_retained.as_ref()?.parse().ok()
}

/// The message does not depend on who holds the slug.
pub(super) fn slug_is_taken(state: &TenantState) -> PassError {
    let message = format!(
        "the slug {} belongs to another Tenant, and a Tenant keeps its slug; delete this one and create it with another spec.slug",
        state.slug
    );
    PassError::Refused(Reason::SlugTaken, message)
}
