//! A filter's conditions: which terms stand beside each other.

mod arithmetic;
pub(super) mod growth;
mod refusal;
mod related;
mod signature;
mod term;

use super::value::{self, family};
use super::visible::Visible;
use crate::query::{Predicate, Value};
use crate::request::{Comparison, Expr, Literal, Term};
use crate::text::Bind;
pub use refusal::{FilterRefusal, Found, Subject};
use related::Rows;
pub use signature::Takes;
use term::{Side, Typed};

/// Recurses as deep as the parser let things nest.
pub(super) fn predicate(visible: &Visible<'_>, expr: &Expr) -> Result<Predicate, FilterRefusal> {
    match expr {
        Expr::All(parts) => Ok(Predicate::All(each(visible, parts)?)),
        Expr::Any(parts) => Ok(Predicate::Any(each(visible, parts)?)),
        Expr::Not(inner) => {
            let mut inner = predicate(visible, inner)?;
            inner.keep_unknown();
            Ok(Predicate::Not(Box::new(inner)))
        }
        Expr::Related { path, is_all, inner } => {
            related::quantified(visible, path, *is_all, inner.as_deref())
        }
        Expr::Compare { .. } | Expr::In { .. } | Expr::Is(_) => match (related::rows(visible, expr), expr) {
            (Rows::Own, _) => own(visible, expr),
            (Rows::Of(path), _) => related::compared(visible, path, expr),
            (Rows::Several, Expr::Compare { left: Term::Name(left), op, right: Term::Name(right) }) => {
                let (left, right) = (related::field(visible, left)?, related::field(visible, right)?);
                together(&left, *op, &right)?;
                Ok(Predicate::Compare { left: left.value, op: *op, right: right.value })
            }
            (Rows::Several, _) => Err(FilterRefusal::SeveralEntities),
        },
    }
}

/// A condition on fields of the entity itself.
fn own(visible: &Visible<'_>, expr: &Expr) -> Result<Predicate, FilterRefusal> {
    match expr {
        Expr::Compare { left, op, right } => compare(visible, left, *op, right),
        Expr::In { left, list } => one_of(visible, left, list),
        Expr::Is(term) => is(visible, term),
        other => predicate(visible, other),
    }
}

fn each(visible: &Visible<'_>, parts: &[Expr]) -> Result<Vec<Predicate>, FilterRefusal> {
    parts.iter().map(|part| predicate(visible, part)).collect()
}

fn compare(
    visible: &Visible<'_>,
    left: &Term,
    op: Comparison,
    right: &Term,
) -> Result<Predicate, FilterRefusal> {
    let right = term::resolve(visible, right)?;
    match (term::resolve_first(visible, left)?, right) {
        (Side::Typed(typed), Side::Literal(literal)) => with_literal(typed, op, literal),
        (Side::Literal(literal), Side::Typed(typed)) => with_literal(typed, op.mirrored(), literal),
        (Side::Typed(left), Side::Typed(right)) => {
            together(&left, op, &right)?;
            Ok(Predicate::Compare { left: left.value, op, right: right.value })
        }
        (Side::Literal(left), Side::Literal(right)) => constants(left, op, right),
    }
}

/// Two constants, each of the type that it looks like; a quoted one is of the type of the other.
fn constants(left: &Literal, op: Comparison, right: &Literal) -> Result<Predicate, FilterRefusal> {
    match (left, right) {
        (Literal::Null, Literal::Null) => match op {
            Comparison::Eq => Ok(constant(true)),
            Comparison::Ne => Ok(constant(false)),
            _ => Err(FilterRefusal::NullOrder(op)),
        },
        (Literal::Null | Literal::Text(_), typed) if !matches!(typed, Literal::Null | Literal::Text(_)) => {
            with_literal(term::natural(typed)?, op.mirrored(), left)
        }
        (Literal::Null, text) => with_literal(term::natural(text)?, op.mirrored(), left),
        (typed, Literal::Null | Literal::Text(_)) => with_literal(term::natural(typed)?, op, right),
        (left, right) => {
            let (left, right) = (term::natural(left)?, term::natural(right)?);
            together(&left, op, &right)?;
            Ok(Predicate::Compare { left: left.value, op, right: right.value })
        }
    }
}

fn constant(value: bool) -> Predicate {
    Predicate::Is(Value::Bind(Bind::text(16, if value { "true" } else { "false" })))
}

fn one_of(visible: &Visible<'_>, left: &Term, list: &[Term]) -> Result<Predicate, FilterRefusal> {
    let typed = match term::resolve_first(visible, left)? {
        Side::Typed(typed) => typed,
        Side::Literal(_) => {
            let equal = list.iter().map(|item| compare(visible, left, Comparison::Eq, item));
            return Ok(Predicate::Any(equal.collect::<Result<_, _>>()?));
        }
    };
    let mut values = Vec::with_capacity(list.len());
    let mut with_null = false;
    for item in list {
        match term::resolve(visible, item)? {
            Side::Literal(Literal::Null) => with_null = true,
            Side::Literal(literal) => {
                ordered_enough(&typed, Comparison::Eq)?;
                values.push(Value::Bind(bind(&typed, literal)?));
            }
            Side::Typed(other) => {
                together(&typed, Comparison::Eq, &other)?;
                values.push(other.value);
            }
        }
    }
    let value = typed.value;
    let is_null = Predicate::IsNull { value: value.clone(), negated: false };
    Ok(match (values.is_empty(), with_null) {
        (true, _) => is_null,
        (false, false) => Predicate::OneOf { value, values },
        (false, true) => Predicate::Any(vec![Predicate::OneOf { value, values }, is_null]),
    })
}

fn is(visible: &Visible<'_>, term: &Term) -> Result<Predicate, FilterRefusal> {
    match term::resolve_first(visible, term)? {
        Side::Typed(typed) if family::is_bool(&typed.ty) => Ok(Predicate::Is(typed.value)),
        Side::Typed(typed) => Err(FilterRefusal::NoCondition(Some(typed.found()))),
        Side::Literal(&Literal::Bool(value)) => Ok(constant(value)),
        Side::Literal(_) => Err(FilterRefusal::NoCondition(None)),
    }
}

fn with_literal(typed: Typed, op: Comparison, literal: &Literal) -> Result<Predicate, FilterRefusal> {
    if *literal == Literal::Null {
        return match op {
            Comparison::Eq => Ok(Predicate::IsNull { value: typed.value, negated: false }),
            Comparison::Ne => Ok(Predicate::IsNull { value: typed.value, negated: true }),
            _ => Err(FilterRefusal::NullOrder(op)),
        };
    }
    ordered_enough(&typed, op)?;
    let right = Value::Bind(bind(&typed, literal)?);
    Ok(Predicate::Compare { left: typed.value, op, right })
}

fn together(left: &Typed, op: Comparison, right: &Typed) -> Result<(), FilterRefusal> {
    ordered_enough(left, op)?;
    ordered_enough(right, op)?;
    match family::comparable(&left.ty, &right.ty) {
        true => Ok(()),
        false => Err(FilterRefusal::Incomparable(Box::new((left.found(), right.found())))),
    }
}

fn ordered_enough(typed: &Typed, op: Comparison) -> Result<(), FilterRefusal> {
    let enough = match op {
        Comparison::Eq | Comparison::Ne => family::has_equality(&typed.ty),
        _ => family::has_order(&typed.ty),
    };
    match enough {
        true => Ok(()),
        false => Err(FilterRefusal::NoComparison { found: typed.found(), op }),
    }
}

fn bind(typed: &Typed, literal: &Literal) -> Result<Bind, FilterRefusal> {
    let mut bind = value::literal(&typed.ty, literal)
        .map_err(|refusal| FilterRefusal::Compared { with: typed.found(), refusal })?;
    if let Value::Field(field) = typed.value {
        bind.field = u16::try_from(field).ok();
    }
    Ok(bind)
}
