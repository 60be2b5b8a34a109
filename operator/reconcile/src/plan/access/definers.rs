//! Functions with the rights of their owner, which policies do not hold: a Tenant says where a table or the triggers of a view run one. A view
//! that calls one is refused (`accept`), unless its entity has `allowDefiner`.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_pg::introspect::actual::{Relation, TenantDb};

use super::bounded;
use crate::plan::accept::Accepted;

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
