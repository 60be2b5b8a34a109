//! `add sub mul div mod` and the minus sign: which numbers meet, and what comes of it, as PostgreSQL has it. Whole
//! numbers divide into whole numbers.

use super::refusal::{FilterRefusal, Subject};
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
) -> Result<Typed, FilterRefusal> {
    let of = Subject::Arithmetic(rest[0].0);
    let first = term::resolve_first(visible, first)?;
    // Every term is resolved once: what nests would double otherwise with every level.
    let sides = rest
        .iter()
        .map(|(op, term)| Ok((*op, term::resolve_first(visible, term)?)))
        .collect::<Result<Vec<_>, FilterRefusal>>()?
        .into_iter();
    let first = match (first, sides.as_slice().first()) {
        (Side::Typed(first), _) => first,
        // A constant that begins a chain is of the type of the next link.
        (Side::Literal(literal), Some((_, Side::Typed(next)))) => beside(literal, &*number(next, &of)?, &of)?,
        (Side::Literal(literal), _) => alone(literal, &of)?,
    };
    let mut ty = number(&first, &of)?;
    let mut links = Vec::with_capacity(rest.len());
    for (op, side) in sides {
        let by = Subject::Arithmetic(op);
        let link = match side {
            Side::Typed(link) => link,
            Side::Literal(literal) => beside(literal, &ty, &by)?,
        };
        *ty = result(&ty, &*number(&link, &by)?);
        if op == Arithmetic::Mod && matches!(Family::of(&ty), Family::Float4 | Family::Float8) {
            return Err(FilterRefusal::Modulo { ty: ty.name });
        }
        links.push((op, link.value));
    }
    Ok(Typed { value: Value::Chain { first: Box::new(first.value), rest: links }, ty, subject: of })
}

pub(crate) fn negate(visible: &Visible<'_>, inner: &Term) -> Result<Typed, FilterRefusal> {
    let inner = match term::resolve_first(visible, inner)? {
        Side::Typed(inner) => inner,
        Side::Literal(literal) => alone(literal, &Subject::Minus)?,
    };
    let ty = number(&inner, &Subject::Minus)?;
    Ok(Typed { value: Value::Negate(Box::new(inner.value)), ty, subject: Subject::Minus })
}

/// The type as arithmetic sees it: below domains, and without what only limits storing.
fn number(typed: &Typed, of: &Subject) -> Result<Box<FieldType>, FilterRefusal> {
    match Family::of(&typed.ty) {
        Family::Integer(..) if typed.ty.base_oid != family::OID => {
            Ok(Box::new(family::base(typed.ty.base_oid)))
        }
        Family::Numeric | Family::Float4 | Family::Float8 => Ok(Box::new(family::base(typed.ty.base_oid))),
        _ => Err(FilterRefusal::NoNumber { of: of.clone(), found: typed.found() }),
    }
}

/// A constant beside a number. Beside whole numbers it may be larger than they are, or have a fraction.
fn beside(literal: &Literal, ty: &FieldType, of: &Subject) -> Result<Typed, FilterRefusal> {
    let (Literal::Number(_) | Literal::Infinity { .. } | Literal::NaN) = literal else {
        return alone(literal, of);
    };
    if let Family::Integer(..) = Family::of(ty) {
        return alone(literal, of);
    }
    let bind = value::literal(ty, literal).map_err(|refusal| FilterRefusal::ConstantOf {
        of: of.clone(),
        ty: ty.name.clone(),
        refusal,
    })?;
    Ok(Typed { value: Value::Bind(bind), ty: Box::new(ty.clone()), subject: Subject::Constant })
}

fn alone(literal: &Literal, of: &Subject) -> Result<Typed, FilterRefusal> {
    let typed = term::natural(literal)?;
    number(&typed, of)?;
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
