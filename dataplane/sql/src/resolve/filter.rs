//! A filter's names become fields, and its literals values of the column beside them.

use rowgate_core::problem::{Code, Problem};

use super::visible::Visible;
use super::{family, value};
use crate::catalog::Field;
use crate::odata::is_bare_name;
use crate::query::{Comparand, Predicate};
use crate::request::{Comparison, Expr, Literal, Operand};

/// Recurses as deep as the parser let `not` and parentheses nest.
pub(super) fn predicate(visible: &Visible<'_>, expr: &Expr) -> Result<Predicate, Problem> {
    match expr {
        Expr::All(parts) => Ok(Predicate::All(each(visible, parts)?)),
        Expr::Any(parts) => Ok(Predicate::Any(each(visible, parts)?)),
        Expr::Not(inner) => Ok(Predicate::Not(Box::new(predicate(visible, inner)?))),
        Expr::Compare { left, op, right } => compare(visible, left, *op, right),
        Expr::In { left, list } => one_of(visible, left, list),
    }
}

fn each(visible: &Visible<'_>, parts: &[Expr]) -> Result<Vec<Predicate>, Problem> {
    parts.iter().map(|part| predicate(visible, part)).collect()
}

/// A field or a literal, after looking.
enum Side<'a> {
    Field(usize),
    Literal(&'a Literal),
}

fn compare(
    visible: &Visible<'_>,
    left: &Operand,
    op: Comparison,
    right: &Operand,
) -> Result<Predicate, Problem> {
    let right = match right {
        Operand::Name(name) => Side::Field(field(visible, name)?),
        Operand::Literal(literal) => Side::Literal(literal),
    };
    match (left_side(visible, left)?, right) {
        (Side::Field(field), Side::Literal(literal)) => with_literal(visible, field, op, literal),
        (Side::Literal(literal), Side::Field(field)) => with_literal(visible, field, op.mirrored(), literal),
        (Side::Field(field), Side::Field(other)) => {
            ordered_enough(visible, field, op)?;
            ordered_enough(visible, other, op)?;
            let (a, b) = (&visible.entity.fields[field], &visible.entity.fields[other]);
            if !family::comparable(&a.ty, &b.ty) {
                return Err(invalid(format!("{} and {} cannot be compared", say(a), say(b))));
            }
            Ok(Predicate::Compare { field, op, with: Comparand::Field(other) })
        }
        (Side::Literal(_), Side::Literal(_)) => {
            Err(invalid("$filter compares two constants; one side has to be a field".to_owned()))
        }
    }
}

fn one_of(visible: &Visible<'_>, left: &Operand, list: &[Literal]) -> Result<Predicate, Problem> {
    let Side::Field(field) = left_side(visible, left)? else {
        return Err(invalid("before in stands a field, not a constant".to_owned()));
    };
    let with_null = list.contains(&Literal::Null);
    let values = list
        .iter()
        .filter(|literal| **literal != Literal::Null)
        .map(|literal| bind(visible, field, literal))
        .collect::<Result<Vec<_>, _>>()?;
    let is_null = Predicate::IsNull { field, negated: false };
    Ok(match (values.is_empty(), with_null) {
        (true, _) => is_null,
        (false, false) => Predicate::OneOf { field, values },
        (false, true) => Predicate::Any(vec![Predicate::OneOf { field, values }, is_null]),
    })
}

fn with_literal(
    visible: &Visible<'_>,
    field: usize,
    op: Comparison,
    literal: &Literal,
) -> Result<Predicate, Problem> {
    if *literal == Literal::Null {
        return match op {
            Comparison::Eq => Ok(Predicate::IsNull { field, negated: false }),
            Comparison::Ne => Ok(Predicate::IsNull { field, negated: true }),
            _ => Err(invalid(format!("null has no order; write eq null or ne null, not {}", op.word()))),
        };
    }
    ordered_enough(visible, field, op)?;
    Ok(Predicate::Compare { field, op, with: Comparand::Value(bind(visible, field, literal)?) })
}

/// A quoted text on the left is a field when it can only be meant so: a readable field has exactly this name, and the
/// name cannot be written without quotes. Everywhere else quotes make a literal.
fn left_side<'a>(visible: &Visible<'_>, operand: &'a Operand) -> Result<Side<'a>, Problem> {
    match operand {
        Operand::Name(name) => Ok(Side::Field(field(visible, name)?)),
        Operand::Literal(literal) => Ok(match literal {
            Literal::Text(text) if !is_bare_name(text) => {
                visible.find(text).map_or(Side::Literal(literal), Side::Field)
            }
            _ => Side::Literal(literal),
        }),
    }
}

fn field(visible: &Visible<'_>, name: &str) -> Result<usize, Problem> {
    match visible.find(name) {
        None if name.contains('/') => {
            Err(invalid("paths through relationships are not served yet; name a field".to_owned()))
        }
        _ => visible.field(name),
    }
}

fn ordered_enough(visible: &Visible<'_>, field: usize, op: Comparison) -> Result<(), Problem> {
    let field = &visible.entity.fields[field];
    let enough = match op {
        Comparison::Eq | Comparison::Ne => family::has_equality(&field.ty),
        _ => family::has_order(&field.ty),
    };
    match enough {
        true => Ok(()),
        false => {
            Err(invalid(format!("{}, which has no {}; ask for eq null or ne null", say(field), op.word())))
        }
    }
}

fn bind(visible: &Visible<'_>, field: usize, literal: &Literal) -> Result<crate::text::Bind, Problem> {
    let field = &visible.entity.fields[field];
    value::literal(&field.ty, literal).map_err(|misfit| invalid(format!("{}: {misfit}", say(field))))
}

fn say(field: &Field) -> String {
    format!("the field {:?} is {}", field.name, field.ty.name)
}

fn invalid(message: String) -> Problem {
    Problem::new(Code::InvalidFilter, message)
}
