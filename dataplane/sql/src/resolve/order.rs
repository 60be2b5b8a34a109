//! The order of a page, made total by the key, and what its cursors are bound to.

use rowgate_core::cursor::Binding;
use rowgate_core::problem::{Code, Problem};

use super::Cursors;
use super::value::family;
use super::visible::Visible;
use crate::catalog::Field;
use crate::query::OrderTerm;
use crate::request::{Expr, OrderBy};
use crate::rest::order_here;

/// PostgreSQL sorts by any number of terms, but the condition of the next page nests once for each.
const MAX_TERMS: usize = 32;

/// The terms asked for, then those key fields that are not among them, ascending.
pub(super) fn terms(visible: &Visible<'_>, orderby: &[OrderBy]) -> Result<Vec<OrderTerm>, Problem> {
    let fields = &visible.entity.fields;
    if MAX_TERMS < orderby.len() {
        return Err(invalid(format!("$orderby has more than {MAX_TERMS} terms")));
    }
    let mut terms: Vec<OrderTerm> = Vec::new();
    for OrderBy { name, descending } in orderby {
        let field = visible.find(name).ok_or_else(|| advised(visible, name))?;
        if terms.iter().any(|term| term.field == field) {
            return Err(invalid(format!("$orderby names {name:?} twice; name it once")));
        }
        if !family::has_order(&fields[field].ty) {
            let ty = &fields[field].ty.name;
            return Err(invalid(format!("the field {name:?} is {ty}, which has no order; leave it out")));
        }
        terms.push(OrderTerm { field, descending: *descending });
    }
    for &field in &visible.entity.key {
        let Field { name, ty, .. } = &fields[field];
        if !family::has_order(ty) {
            // Without a total order a page would end between rows that nothing tells apart.
            return Err(Problem::new(
                Code::BadRequest,
                format!(
                    "the key field {name:?} is {}, which has no order that pages can follow; the entity needs other keyFields",
                    ty.name
                ),
            ));
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

/// No such field; `id.desc` and `-id` hold one.
fn advised(visible: &Visible<'_>, name: &str) -> Problem {
    let problem = visible.unknown(name);
    let order = order_here(name).filter(|order| *order != name);
    let known =
        order.filter(|order| order.split([' ', ',']).next().is_some_and(|it| visible.find(it).is_some()));
    match known {
        Some(order) => problem.detail(format!("write $orderby={order}")),
        None => problem,
    }
}

fn invalid(message: String) -> Problem {
    Problem::new(Code::InvalidOrderBy, message)
}
