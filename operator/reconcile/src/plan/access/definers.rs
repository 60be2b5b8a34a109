//! Functions with the rights of their owner, which policies do not hold: a Tenant says where a table or the triggers of a view run one. A view
//! that calls one is refused (`accept`), unless its entity has `allowDefiner`. Where PUBLIC may execute one in the database of an application,
//! or read anything, no SQL of callers runs, and no function is called.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_pg::introspect::actual::{Relation, TenantDb, Unconfined};

use super::bounded;
use crate::desired::Desired;
use crate::plan::accept::Accepted;
use crate::plan::differences;

pub(in crate::plan) fn sentences(
    accepted: &BTreeMap<EntityName, Accepted<'_>>,
    db: &TenantDb,
) -> Vec<String> {
    let of = |(name, entity): (&EntityName, &Accepted<'_>)| {
        let relation = entity.relation()?;
        let functions: BTreeSet<&str> =
            called(relation, db).chain(relation.definers.iter().map(String::as_str)).collect();
        let functions: Vec<&str> = functions.into_iter().collect();
        (!functions.is_empty()).then(|| {
            format!(
                "entities[{name}]: it runs {} with the rights of the owner of the tables (SECURITY DEFINER), which no policy filters",
                functions.join(", ")
            )
        })
    };
    bounded(accepted.iter().filter_map(of).collect(), |more| {
        format!("{more} more entities run functions that are SECURITY DEFINER")
    })
}

/// Those that expressions of the relation itself call.
pub(in crate::plan) fn called<'a>(relation: &'a Relation, db: &'a TenantDb) -> impl Iterator<Item = &'a str> {
    let is_definer = |signature: &&String| {
        let routine = db.routines.get(*signature);
        routine.is_some_and(|it| it.declared.definer && it.declared.schema != "dl")
    };
    relation.routines.iter().filter(is_definer).map(String::as_str)
}

/// What PUBLIC may execute or read in the database of an application that no policy filters, and how it is taken from PUBLIC; `None`: nothing, or
/// Rowgate made the database and takes it. Casts to `json` count in each.
pub(in crate::plan) fn unconfined(desired: &Desired, db: &TenantDb) -> Option<String> {
    let lines = |of: &[Unconfined]| {
        of.iter().take(differences::MAX_NAMED).map(|it| it.line.clone()).collect::<Vec<_>>().join(" ")
    };
    if !db.json_casts.is_empty() {
        return Some(format!(
            "to_json {}, with the rights of its owner; run: {}",
            differences::list(db.json_casts.iter().map(|it| it.right.as_str())),
            lines(&db.json_casts)
        ));
    }
    if !desired.is_adopted || db.unconfined.is_empty() {
        return None;
    }
    Some(format!(
        "PUBLIC may {}, which no policy filters; grant that to the roles that need it, then take it from PUBLIC: {}",
        differences::list(db.unconfined.iter().map(|it| it.right.as_str())),
        lines(&db.unconfined)
    ))
}

/// The same, as a warning.
pub(in crate::plan) fn without_sql(desired: &Desired, db: &TenantDb) -> Option<String> {
    let why = unconfined(desired, db)?;
    Some(format!("no SQL of callers runs in this database, and no function is called: {why}"))
}
