//! The order of a page, made total by the key, and what its cursors are bound to.

use rowgate_core::cursor::Binding;

use super::Cursors;
use super::refusal::OrderRefusal;
use super::value::family;
use super::visible::Visible;
use crate::catalog::Field;
use crate::query::OrderTerm;
use crate::request::{Expr, OrderBy};

/// PostgreSQL sorts by any number of terms, but the condition of the next page nests once for each.
const MAX_TERMS: usize = 32;

/// The terms asked for, then those key fields that are not among them, ascending.
pub(super) fn terms(visible: &Visible<'_>, orderby: &[OrderBy]) -> Result<Vec<OrderTerm>, OrderRefusal> {
    let fields = &visible.entity.fields;
    if MAX_TERMS < orderby.len() {
        return Err(OrderRefusal::TooMany { max: MAX_TERMS });
    }
    let mut terms: Vec<OrderTerm> = Vec::new();
    for OrderBy { name, descending } in orderby {
        let field = visible.find(name).ok_or_else(|| OrderRefusal::NoField(visible.unknown(name)))?;
        if terms.iter().any(|term| term.field == field) {
            return Err(OrderRefusal::Twice(name.clone()));
        }
        if !family::has_order(&fields[field].ty) {
            let ty = fields[field].ty.name.clone();
            return Err(OrderRefusal::NoOrder { name: name.clone(), ty });
        }
        terms.push(OrderTerm { field, descending: *descending });
    }
    for &field in &visible.entity.key {
        let Field { name, ty, .. } = &fields[field];
        if !family::has_order(ty) {
            // Without a total order a page would end between rows that nothing tells apart.
            return Err(OrderRefusal::KeyWithoutOrder { name: name.clone(), ty: ty.name.clone() });
        }
        if terms.iter().all(|term| term.field != field) {
            terms.push(OrderTerm { field, descending: false });
        }
    }
    Ok(terms)
}

/// Entity, order with types, filter and caller: a column that changed its type invalidates the cursors over it.
pub(super) fn binding(
    visible: &Visible<'_>,
    order: &[OrderTerm],
    filter: Option<&Expr>,
    cursors: Cursors<'_>,
) -> Binding {
    let order: Vec<String> = order
        .iter()
        .map(|term| {
            let field = &visible.entity.fields[term.field];
            format!("{:?} {} {}", field.name, field.ty.base_oid, if term.descending { "desc" } else { "asc" })
        })
        .collect();
    let filter = filter.map(Expr::to_string).unwrap_or_default();
    Binding::new(cursors.key, &[visible.entity.name.as_str(), &order.join(","), &filter, cursors.caller])
}
