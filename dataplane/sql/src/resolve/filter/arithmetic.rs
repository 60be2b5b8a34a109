//! `add sub mul div mod` and the minus sign: which numbers meet, and what comes of it, as PostgreSQL has it. Whole
//! numbers divide into whole numbers.

use rowgate_core::problem::Problem;

use super::invalid;
use super::term::{self, Side, Typed};
use crate::catalog::FieldType;
use crate::query::Value;
use crate::request::{Arithmetic, Literal, Term};
use crate::resolve::value;
use crate::resolve::value::family::{self, Family};
use crate::resolve::visible::Visible;

pub(crate) fn chain(
    visible: &Visible<'_>,
    first: &Term,
    rest: &[(Arithmetic, Term)],
) -> Result<Typed, Problem> {
    let word = rest[0].0.word();
    let first = term::resolve_first(visible, first)?;
    // Every term is resolved once: what nests would double otherwise with every level.
    let sides = rest
        .iter()
        .map(|(op, term)| Ok((*op, term::resolve_first(visible, term)?)))
        .collect::<Result<Vec<_>, Problem>>()?
        .into_iter();
    let first = match (first, sides.as_slice().first()) {
        (Side::Typed(first), _) => first,
        // A constant that begins a chain is of the type of the next link.
        (Side::Literal(literal), Some((_, Side::Typed(next)))) => {
            beside(literal, &*number(next, word)?, word)?
        }
        (Side::Literal(literal), _) => alone(literal, word)?,
    };
    let mut ty = number(&first, word)?;
    let mut links = Vec::with_capacity(rest.len());
    for (op, side) in sides {
        let link = match side {
            Side::Typed(link) => link,
            Side::Literal(literal) => beside(literal, &ty, op.word())?,
        };
        *ty = result(&ty, &*number(&link, op.word())?);
        if op == Arithmetic::Mod && matches!(Family::of(&ty), Family::Float4 | Family::Float8) {
            return Err(invalid(format!("mod takes whole and decimal numbers, not {}", ty.name)));
        }
        links.push((op, link.value));
    }
    Ok(Typed {
        value: Value::Chain { first: Box::new(first.value), rest: links },
        ty,
        what: format!("the result of {word}"),
    })
}

pub(crate) fn negate(visible: &Visible<'_>, inner: &Term) -> Result<Typed, Problem> {
    let inner = match term::resolve_first(visible, inner)? {
        Side::Typed(inner) => inner,
        Side::Literal(literal) => alone(literal, "a minus sign")?,
    };
    let ty = number(&inner, "a minus sign")?;
    Ok(Typed {
        value: Value::Negate(Box::new(inner.value)),
        ty,
        what: "the result of a minus sign".to_owned(),
    })
}

/// The type as arithmetic sees it: below domains, and without what only limits storing.
fn number(typed: &Typed, word: &str) -> Result<Box<FieldType>, Problem> {
    match Family::of(&typed.ty) {
        Family::Integer(..) if typed.ty.base_oid != family::OID => {
            Ok(Box::new(family::base(typed.ty.base_oid)))
        }
        Family::Numeric | Family::Float4 | Family::Float8 => Ok(Box::new(family::base(typed.ty.base_oid))),
        _ => Err(invalid(format!("{word} takes numbers; {}", typed.say()))),
    }
}

/// A constant beside a number. Beside whole numbers it may be larger than they are, or have a fraction.
fn beside(literal: &Literal, ty: &FieldType, word: &str) -> Result<Typed, Problem> {
    let (Literal::Number(_) | Literal::Infinity { .. } | Literal::NaN) = literal else {
        return alone(literal, word);
    };
    if let Family::Integer(..) = Family::of(ty) {
        return alone(literal, word);
    }
    let bind = value::literal(ty, literal)
        .map_err(|misfit| invalid(format!("a constant of {word} stands beside {}: {misfit}", ty.name)))?;
    Ok(Typed { value: Value::Bind(bind), ty: Box::new(ty.clone()), what: "the constant".to_owned() })
}

fn alone(literal: &Literal, word: &str) -> Result<Typed, Problem> {
    let typed = term::natural(literal)?;
    number(&typed, word)?;
    Ok(typed)
}

fn result(left: &FieldType, right: &FieldType) -> FieldType {
    let rank = |ty: &FieldType| match ty.base_oid {
        21 => 0,
        23 => 1,
        20 => 2,
        1700 => 3,
        700 => 4,
        _ => 5,
    };
    let (low, high) = if rank(left) <= rank(right) { (left, right) } else { (right, left) };
    // real meets only itself; with anything else both become double precision.
    let oid = if high.base_oid == 700 && low.base_oid != 700 { 701 } else { high.base_oid };
    family::base(oid)
}
