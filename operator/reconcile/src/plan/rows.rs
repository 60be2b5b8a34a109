//! The rows of `dl` that say what is served: entities, permission sets, claims, limits.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_core::role::SHARED_ROLE;
use rowgate_pg::actual::{QName, TenantDb};
use rowgate_sql::catalog::PermissionRecord;
use rowgate_sql::ddl::records;
use rowgate_sql::text::Sql;

use super::accept::{Accepted, qname};
use super::rights;
use crate::desired::{Desired, KeySpec};

/// Claims by role: the shared ones, and each scoped key's own. True in the second place: they differ from what is.
pub(super) fn claims(desired: &Desired, db: &TenantDb, live: &[&KeySpec]) -> Vec<Sql> {
    let mut wanted: BTreeMap<(String, String), &String> = BTreeMap::new();
    for (name, value) in &desired.shared_claims {
        wanted.insert((SHARED_ROLE.to_owned(), name.clone()), value);
    }
    for key in live.iter().filter(|key| key.role().as_str() != SHARED_ROLE) {
        for (name, value) in &key.claims {
            wanted.insert((key.role().to_string(), name.clone()), value);
        }
    }
    let extra = db.claims.keys().filter(|claim| !wanted.contains_key(*claim));
    let mut statements: Vec<Sql> = extra.map(|(role, name)| records::drop_claim(role, name)).collect();
    let changed = wanted.iter().filter(|(claim, value)| db.claims.get(*claim) != Some(**value));
    statements.extend(changed.map(|((role, name), value)| records::put_claim(role, name, value)));
    statements
}

pub(super) fn entities(db: &TenantDb, accepted: &BTreeMap<EntityName, Accepted<'_>>) -> Vec<Sql> {
    let gone = db.entities.keys().filter(|name| !accepted.keys().any(|accepted| accepted.as_str() == *name));
    let mut statements: Vec<Sql> = gone.map(|name| records::drop_entity(name)).collect();
    for (name, entity) in accepted {
        if db.entities.get(name.as_str()) != Some(&entity.record) {
            let definition = serde_json::to_string(&entity.record).expect("an entity is plain values");
            statements.push(records::put_entity(name.as_str(), &definition));
        }
    }
    statements
}

/// What every entity stands on must be what it was when the plan was made, by the time that the plan's rights stand.
pub(super) fn stand(db: &TenantDb, accepted: &BTreeMap<EntityName, Accepted<'_>>) -> Option<Sql> {
    let mut todo: Vec<QName> = accepted.values().map(|entity| qname(entity.spec)).collect();
    let mut all: BTreeSet<QName> = BTreeSet::new();
    while let Some(name) = todo.pop() {
        let reads = db.relations.get(&name).map(|relation| relation.reads.iter().cloned());
        if all.insert(name) {
            todo.extend(reads.into_iter().flatten());
        }
    }
    let each = all.iter().filter_map(|name| Some((name, db.relations.get(name)?))).map(|((schema, name), relation)| {
        serde_json::json!({"schema": schema, "name": name, "oid": relation.oid, "rule": relation.rule})
    });
    let relations: Vec<serde_json::Value> = each.collect();
    (!relations.is_empty()).then(|| records::stand(&serde_json::Value::from(relations).to_string()))
}

pub(super) fn permission_sets(db: &TenantDb, subjects: &BTreeMap<String, Vec<PermissionRecord>>) -> Vec<Sql> {
    let changed = subjects.iter().filter_map(|(role, permissions)| {
        let hash = rights::hash(permissions);
        let there = db.permission_sets.get(role);
        if there.is_some_and(|set| set.hash == hash && set.permissions == *permissions) {
            return None;
        }
        let text = serde_json::to_string(permissions).expect("permissions are plain values");
        Some(records::put_permission_set(role, &hash, &text))
    });
    changed.collect()
}

pub(super) fn limits(desired: &Desired, db: &TenantDb) -> Vec<Sql> {
    let same = db.state.as_ref().is_some_and(|state| state.limits == desired.limits);
    let text = serde_json::to_string(&desired.limits).expect("limits are plain values");
    if same { Vec::new() } else { vec![records::set_limits(&text)] }
}
