//! The rows of `dl` that say what is served: entities, permission sets, claims, limits.

use std::collections::BTreeMap;

use rowgate_core::name::{EntityName, Ulid};
use rowgate_core::role::SHARED_ROLE;
use rowgate_pg::introspect::actual::TenantDb;
use rowgate_sql::catalog::{Limits, PermissionRecord};
use rowgate_sql::ddl::records;
use rowgate_sql::text::Sql;

use super::accept::{Accepted, Away, On, qname};
use super::access::views::{Reached, with_read};
use super::access::{definers, rights};
use super::relationships::is_link;
use super::{Closed, Of, Statement};
use crate::desired::{Desired, KeySpec};

/// Claims by role: the shared ones, and each scoped key's own. Those of a closed key stay as they are: no login can
/// become it.
pub(super) fn claims(desired: &Desired, db: &TenantDb, live: &[&KeySpec], closed: &Closed) -> Vec<Statement> {
    let mut wanted: BTreeMap<(String, String), &String> = BTreeMap::new();
    let ids: BTreeMap<String, &Ulid> =
        desired.keys.iter().map(|key| (key.role().to_string(), &key.id)).collect();
    let of = |role: &str| match ids.get(role).filter(|_| role != SHARED_ROLE) {
        Some(id) => Of::Key((*id).clone()),
        None => Of::Tenant,
    };
    let open = |role: &str| {
        closed.keys.is_empty() || !matches!(of(role), Of::Key(id) if closed.keys.contains_key(&id))
    };
    for (name, value) in &desired.shared_claims {
        wanted.insert((SHARED_ROLE.to_owned(), name.clone()), value);
    }
    for key in live.iter().filter(|key| key.role().as_str() != SHARED_ROLE) {
        for (name, value) in &key.claims {
            wanted.insert((key.role().to_string(), name.clone()), value);
        }
    }
    let extra = db.claims.keys().filter(|claim| !wanted.contains_key(*claim) && open(&claim.0));
    let drop = |(role, name): &(String, String)| {
        let added = format!("claim {name} of {role} was added");
        of(role).says(records::drop_claim(role, name)).undoing([added])
    };
    let mut statements: Vec<Statement> = extra.map(drop).collect();
    let changed =
        wanted.iter().filter(|(claim, value)| db.claims.get(*claim) != Some(**value) && open(&claim.0));
    statements.extend(changed.map(|(claim, value)| {
        let (role, name) = claim;
        let differs = if db.claims.contains_key(claim) { "has another value" } else { "is missing" };
        let differs = format!("claim {name} of {role} {differs}");
        of(role).says(records::put_claim(role, name, value)).undoing([differs])
    }));
    statements
}

/// Whether an entity of the manifests is served from this plan on, or no longer, or is away: rights come and go with it.
pub(super) fn shift(desired: &Desired, db: &TenantDb, accepted: &BTreeMap<EntityName, Accepted<'_>>) -> bool {
    let mut names = desired.entities.iter().map(|spec| &spec.name).filter(|name| !is_link(name));
    names.any(|name| accepted.contains_key(name) != db.entities.contains_key(name.as_str()))
}

/// Rows of `dl.entities` that are new, changed or gone. That of one that is `away` stays as it is.
pub(super) fn entities(
    desired: &Desired,
    db: &TenantDb,
    accepted: &BTreeMap<EntityName, Accepted<'_>>,
    away: &Away,
) -> Vec<Statement> {
    let accepted: BTreeMap<&EntityName, &Accepted<'_>> =
        accepted.iter().filter(|(name, _)| !is_link(name)).collect();
    let stays = |name: &str| accepted.keys().copied().chain(away.keys()).any(|it| it.as_str() == name);
    let gone = db.entities.keys().filter(|name| !stays(name));
    let drop = |name: &String| {
        let differs = match desired.entities.iter().any(|spec| spec.name.as_str() == name) {
            true => format!("entity {name} cannot be served as it is now"),
            false => format!("entity {name} was added to dl.entities"),
        };
        Of::Entity(name.clone()).says(records::drop_entity(name)).undoing([differs])
    };
    let mut statements: Vec<Statement> = gone.map(drop).collect();
    for (name, entity) in accepted {
        if db.entities.get(name.as_str()) != Some(&entity.record) {
            let definition = serde_json::to_string(&entity.record).expect("an entity is plain values");
            let differs = match db.entities.contains_key(name.as_str()) {
                true => format!("entity {name} has another definition in dl.entities"),
                false => format!("entity {name} can be served and is missing from dl.entities"),
            };
            let put = Of::Entity(name.to_string()).says(records::put_entity(name.as_str(), &definition));
            statements.push(put.undoing([differs]));
        }
    }
    statements
}

/// What every entity stands on must be what it was when the plan was made, by the time that the plan's rights stand.
pub(super) fn stand(
    db: &TenantDb,
    accepted: &BTreeMap<EntityName, Accepted<'_>>,
    reached: &Reached<'_>,
) -> Option<Sql> {
    let relations = accepted.values().filter(|entity| entity.relation().is_some());
    let all = with_read(db, relations.map(|entity| qname(entity.spec)));
    let each = all.into_iter().map(|(name, relation)| {
        let (schema, object) = name;
        let owner = reached.owner(name, relation);
        serde_json::json!({"schema": schema, "name": object, "oid": relation.oid, "rule": relation.rule, "owner": owner})
    });
    let relations: Vec<serde_json::Value> = each.collect();
    (!relations.is_empty()).then(|| records::stand(&serde_json::Value::from(relations).to_string()))
}

/// The same of every routine: the only one of its name, and SECURITY DEFINER or not as it was.
pub(super) fn stand_routines(accepted: &BTreeMap<EntityName, Accepted<'_>>) -> Option<Sql> {
    let each = accepted.values().filter_map(|entity| match entity.on {
        On::Relation(_) => None,
        On::Routine(_, routine) => Some(&routine.declared),
    });
    let routines: Vec<serde_json::Value> = each
        .map(|it| serde_json::json!({"schema": it.schema, "name": it.name, "oid": it.oid, "definer": it.definer}))
        .collect();
    (!routines.is_empty()).then(|| records::stand_routines(&serde_json::Value::from(routines).to_string()))
}

/// What a statement about the role of a permission set belongs to.
pub(super) fn of_set(role: &str, hash: &str) -> Of {
    if role == SHARED_ROLE { Of::Tenant } else { Of::Set(hash.to_owned()) }
}

pub(super) fn permission_sets(
    db: &TenantDb,
    subjects: &BTreeMap<String, Vec<PermissionRecord>>,
) -> Vec<Statement> {
    let changed = subjects.iter().filter_map(|(role, permissions)| {
        let hash = rights::hash(permissions);
        let there = db.permission_sets.get(role);
        let differs = match there {
            // what it holds follows from what it is to hold
            Some(set) if set.hash == hash => Some("has other permissions"),
            None if role == SHARED_ROLE => Some("is missing"),
            _ => None,
        };
        let differs = differs.map(|differs| format!("the row of {role} in dl.permission_sets {differs}"));
        if there.is_some_and(|set| set.hash == hash && set.permissions == *permissions) {
            return None;
        }
        let text = serde_json::to_string(permissions).expect("permissions are plain values");
        let sql = records::put_permission_set(role, &hash, &text);
        Some(of_set(role, &hash).says(sql).undoing(differs))
    });
    changed.collect()
}

/// Callers write SQL unless PUBLIC may execute what would read past their rights.
pub(super) fn limits(desired: &Desired, db: &TenantDb) -> Option<Statement> {
    let callers_sql = definers::unconfined(desired, db).is_none();
    let limits = Limits { callers_sql, ..desired.limits.clone() };
    let there = db.state.as_ref().map(|state| &state.limits);
    if there == Some(&limits) {
        return None;
    }
    // what PUBLIC may execute was changed elsewhere
    let is_changed = there.is_none_or(|there| Limits { callers_sql, ..there.clone() } != limits);
    let text = serde_json::to_string(&limits).expect("limits are plain values");
    let differs = is_changed.then(|| "the limits in dl.state were changed".to_owned());
    Some(Statement::from(records::set_limits(&text)).undoing(differs))
}
