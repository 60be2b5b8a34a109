//! Indexes that no filter can use: under a policy PostgreSQL lets only leakproof operators look at rows first.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_pg::introspect::actual::Relation;
use rowgate_sql::catalog::{Action, EntityKind, PermissionRecord};

use super::bounded;
use crate::plan::accept::{Accepted, exposed};

/// A sentence for each column that a key may read and filter by without using its index.
pub(in crate::plan) fn sentences(
    accepted: &BTreeMap<EntityName, Accepted<'_>>,
    permissions: &BTreeMap<String, Vec<PermissionRecord>>,
) -> Vec<String> {
    let read = permissions.values().flatten().filter(|record| record.action == Action::Read);
    let mut readable: BTreeMap<&EntityName, BTreeSet<&str>> = BTreeMap::new();
    for record in read {
        readable.entry(&record.entity).or_default().extend(record.columns.iter().map(String::as_str));
    }
    let tables = accepted.iter().filter(|(_, it)| it.spec.kind == EntityKind::Table);
    let tables =
        tables.filter_map(|(name, it)| Some((name, it, it.relation().filter(|it| is_filtered(it))?)));
    let columns = tables.flat_map(|(name, entity, relation)| {
        let read = readable.get(name).cloned().unwrap_or_default();
        let leaky = relation.leaky.iter().filter(move |(column, _)| read.contains(column.as_str()));
        leaky.map(move |(column, operators)| {
            let declared = relation.columns.iter().find(|it| it.name == *column);
            let declared = declared.map_or("its type", |column| column.type_name.as_str());
            format!(
                "entities[{name}]: a $filter on {} reads every row: under row-level security {operators} of {declared} cannot use its index (not leakproof); filter by another indexed field too",
                exposed(&entity.spec.mappings, column)
            )
        })
    });
    bounded(columns.collect(), |more| format!("{more} more fields have an index that no $filter can use"))
}

/// Whether reading the table is filtered by more than the constant `true`, which PostgreSQL folds away, and with it the
/// barrier before the index (EXPLAIN on 18.4).
fn is_filtered(relation: &Relation) -> bool {
    let read: Vec<_> =
        relation.policies.values().filter(|it| ["ALL", "SELECT"].contains(&it.command)).collect();
    let all = |using: &Option<String>| using.as_deref() == Some("true");
    let open = read.iter().any(|it| it.permissive && all(&it.using) && it.roles.contains("public"));
    !open || read.iter().any(|it| !it.permissive && !all(&it.using))
}
