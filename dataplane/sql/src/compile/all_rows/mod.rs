//! A read without pages: every row that passes the filter, as columns.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::nested::Lists;
use super::{order, rows, select};
use crate::catalog::Entity;
use crate::query::{Query, Selected};
use crate::text::Sql;

/// A read of all rows.
#[derive(Debug, Clone)]
pub struct CompiledRows {
    pub sql: Sql,
    pub entity: Arc<Entity>,
    /// The oids of the relations that its filter and its order read beside those of the entity.
    pub beside: BTreeSet<u32>,
    /// What the columns are called, in their order.
    pub names: Vec<String>,
}

/// One statement, whose columns are the fields that `query` selects. `in_any_order`: its order is left out, which PostgreSQL answers
/// sooner.
#[must_use]
pub fn all_rows(mut query: Query, in_any_order: bool) -> CompiledRows {
    let terms = std::mem::take(&mut query.order);
    if in_any_order {
        query.order_references.clear();
    }
    query.select.retain(|selected| matches!(selected, Selected::Field(_) | Selected::Alias { .. }));
    let name = |selected: &Selected| match selected {
        Selected::Alias { name, .. } => Some(name.clone()),
        Selected::Field(at) => Some(query.entity.fields[*at].name.clone()),
        _ => None,
    };
    let names = query.select.iter().filter_map(name).collect();
    let mut beside = BTreeSet::new();
    query.relations_beside(&mut beside);
    let mut sql = Sql::new();
    // a query without terms selects no column for the place where a page ends
    let select = select::write(&mut sql, &query, &[], &mut Lists::below(&query));
    if in_any_order {
        rows(&mut sql, &query, None, &select.joins, None);
    } else {
        let ordered = Query { order: terms, ..query.clone() };
        rows(&mut sql, &ordered, None, &select.joins, None);
        order(&mut sql, &ordered);
    }
    CompiledRows { sql, entity: query.entity, beside, names }
}
