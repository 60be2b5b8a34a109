//! The order of a page, made total by the key, and what its cursors are bound to.

use rowgate_core::cursor::Binding;

use super::Cursors;
use super::path::Paths;
use super::refusal::OrderRefusal;
use super::value::family;
use super::visible::Visible;
use crate::catalog::Field;
use crate::query::{OrderTerm, Query, Reference};
use crate::request::{Expr, OrderBy};

/// PostgreSQL sorts by any number of terms, but the condition of the next page nests once for each.
const MAX_TERMS: usize = 32;

/// The order of a read, and the rows of other entities that it asks.
pub(super) struct Order {
    pub(super) terms: Vec<OrderTerm>,
    pub(super) references: Vec<Reference>,
}

/// The terms asked for, then those key fields that are not among them, ascending.
pub(super) fn terms(visible: &Visible<'_>, orderby: &[OrderBy]) -> Result<Order, OrderRefusal> {
    let fields = &visible.entity.fields;
    if MAX_TERMS < orderby.len() {
        return Err(OrderRefusal::TooMany { max: MAX_TERMS });
    }
    let mut terms: Vec<OrderTerm> = Vec::new();
    let mut paths = Paths::default();
    for OrderBy { name, descending } in orderby {
        let (reference, field) = match (visible.find(name), name.rsplit_once('/')) {
            (Some(field), _) => (None, field),
            (None, Some((path, name))) if visible.catalog.is_some() => {
                paths.field(visible, path, name).map_err(OrderRefusal::Path)?
            }
            (None, _) => return Err(OrderRefusal::NoField(visible.unknown(name))),
        };
        if terms.iter().any(|term| term.field == field && term.reference == reference) {
            return Err(OrderRefusal::Twice(name.clone()));
        }
        let fields = reference.map_or(fields, |number| &paths.references()[number].entity.fields);
        if !family::has_order(&fields[field].ty) {
            let ty = fields[field].ty.name.clone();
            return Err(OrderRefusal::NoOrder { name: name.clone(), ty });
        }
        terms.push(OrderTerm { field, reference, descending: *descending });
    }
    for &field in &visible.entity.key {
        let Field { name, ty, .. } = &fields[field];
        if !family::has_order(ty) {
            // Without a total order a page would end between rows that nothing tells apart.
            return Err(OrderRefusal::KeyWithoutOrder { name: name.clone(), ty: ty.name.clone() });
        }
        if terms.iter().all(|term| term.field != field || term.reference.is_some()) {
            terms.push(OrderTerm { field, reference: None, descending: false });
        }
    }
    Ok(Order { terms, references: paths.into_references() })
}

/// Entity, order with types, filter and caller: a column that changed its type invalidates the cursors over it.
pub(super) fn binding(query: &Query, filter: Option<&Expr>, cursors: Cursors<'_>) -> Binding {
    let order: Vec<String> = query
        .order
        .iter()
        .map(|term| {
            let Field { name, ty, .. } = &query.ordered(term).fields[term.field];
            let way = if term.descending { "desc" } else { "asc" };
            format!("{}{name:?} {} {way}", way_to(query, term.reference), ty.base_oid)
        })
        .collect();
    let filter = filter.map(Expr::to_string).unwrap_or_default();
    Binding::new(cursors.key, &[query.entity.name.as_str(), &order.join(","), &filter, cursors.caller])
}

/// By which entities and fields a reference is reached: two paths are never the same text.
fn way_to(query: &Query, reference: Option<usize>) -> String {
    let Some(reference) = reference.map(|number| &query.order_references[number]) else {
        return String::new();
    };
    let Reference { from, link, entity } = reference;
    format!("{}{:?} {link:?}/", way_to(query, *from), entity.name.as_str())
}
