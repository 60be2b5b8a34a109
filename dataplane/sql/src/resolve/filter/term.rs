//! A filter's names become fields, its functions typed calls, and its literals stay what they are until something
//! typed stands beside them.

use super::refusal::{FilterRefusal, Found, Subject};
use super::{arithmetic, signature};
use crate::catalog::FieldType;
use crate::query::Value;
use crate::request::{Literal, Term, is_bare_name};
use crate::resolve::value::{self, family};
use crate::resolve::visible::Visible;

/// A term, after looking.
pub(crate) enum Side<'a> {
    Typed(Typed),
    Literal(&'a Literal),
}

pub(crate) struct Typed {
    pub(crate) value: Value,
    /// Boxed, because terms nest and each level has several of them on the stack.
    pub(crate) ty: Box<FieldType>,
    pub(crate) subject: Subject,
}

impl Typed {
    pub(crate) fn found(&self) -> Found {
        Found { subject: self.subject.clone(), ty: self.ty.name.clone() }
    }
}

/// Where quotes always make a literal.
pub(crate) fn resolve<'a>(visible: &Visible<'_>, term: &'a Term) -> Result<Side<'a>, FilterRefusal> {
    Ok(match term {
        Term::Name(name) => Side::Typed(field(visible, name, true)?),
        Term::Literal(literal) => Side::Literal(literal),
        Term::Call { function, arguments } => Side::Typed(signature::call(visible, *function, arguments)?),
        Term::Chain { first, rest } => Side::Typed(arithmetic::chain(visible, first, rest)?),
        Term::Negate(inner) => Side::Typed(arithmetic::negate(visible, inner)?),
    })
}

/// On the left of an operator, as the first argument of a function and in arithmetic, a quoted text is a field when it
/// can only be meant so: a readable field has exactly this name, and the name cannot be written without quotes.
pub(crate) fn resolve_first<'a>(visible: &Visible<'_>, term: &'a Term) -> Result<Side<'a>, FilterRefusal> {
    match term {
        Term::Literal(Literal::Text(text)) if !is_bare_name(text) && visible.find(text).is_some() => {
            Ok(Side::Typed(field(visible, text, false)?))
        }
        Term::Name(name) => Ok(Side::Typed(field(visible, name, false)?)),
        _ => resolve(visible, term),
    }
}

/// `may_be_text`: where a constant is likely, a word that is no field may be a text without its quotes.
pub(super) fn field(visible: &Visible<'_>, name: &str, may_be_text: bool) -> Result<Typed, FilterRefusal> {
    let field = match visible.find(name) {
        None => return Err(FilterRefusal::NoField { unknown: visible.unknown(name), may_be_text }),
        Some(field) => field,
    };
    let ty = Box::new(visible.entity.fields[field].ty.clone());
    let subject = Subject::Field(visible.entity.fields[field].name.clone());
    Ok(Typed { value: Value::Field(field), ty, subject })
}

/// A literal that nothing typed stands beside, as what it looks like.
pub(crate) fn natural(literal: &Literal) -> Result<Typed, FilterRefusal> {
    let oid = match literal {
        Literal::Null => {
            return Err(FilterRefusal::Null);
        }
        Literal::Bool(_) => 16,
        Literal::Number(text) => whole(text).unwrap_or(1700),
        Literal::Infinity { .. } | Literal::NaN => 1700,
        Literal::Date(_) => 1082,
        Literal::Timestamp(_) => 1184,
        Literal::Time(_) => 1083,
        Literal::Guid(_) => 2950,
        Literal::Text(_) => 25,
        Literal::Duration(_) => family::INTERVAL,
        Literal::Binary(_) => 17,
        Literal::Enum { .. } => {
            return Err(FilterRefusal::LooseEnum(literal.to_string()));
        }
    };
    let ty = Box::new(family::base(oid));
    let bind = value::literal(&ty, literal)
        .map_err(|refusal| FilterRefusal::Constant { ty: ty.name.clone(), refusal })?;
    Ok(Typed { value: Value::Bind(bind), ty, subject: Subject::Constant })
}

/// The smaller of integer and bigint that holds a whole number.
fn whole(text: &str) -> Option<u32> {
    let number: i64 = text.parse().ok().filter(|_| !text.starts_with('+'))?;
    Some(if i32::try_from(number).is_ok() { 23 } else { 20 })
}
