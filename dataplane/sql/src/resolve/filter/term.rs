//! A filter's names become fields, its functions typed calls, and its literals stay what they are until something
//! typed stands beside them.

use rowgate_core::problem::{Code, Problem};

use super::invalid;
use super::{arithmetic, signature};
use crate::catalog::FieldType;
use crate::query::Value;
use crate::request::{Literal, Term};
use crate::resolve::value::{self, family};
use crate::resolve::visible::Visible;
use crate::rest::{self, is_bare_name};

/// A term, after looking.
pub(crate) enum Side<'a> {
    Typed(Typed),
    Literal(&'a Literal),
}

pub(crate) struct Typed {
    pub(crate) value: Value,
    /// Boxed, because terms nest and each level has several of them on the stack.
    pub(crate) ty: Box<FieldType>,
    /// For messages: `the field "id"`, `the function length`.
    pub(crate) what: String,
}

impl Typed {
    pub(crate) fn say(&self) -> String {
        format!("{} is {}", self.what, self.ty.name)
    }
}

/// Where quotes always make a literal.
pub(crate) fn resolve<'a>(visible: &Visible<'_>, term: &'a Term) -> Result<Side<'a>, Problem> {
    Ok(match term {
        Term::Name(name) => Side::Typed(field(visible, name).map_err(|problem| or_text(problem, name))?),
        Term::Literal(literal) => Side::Literal(literal),
        Term::Call { function, arguments } => Side::Typed(signature::call(visible, *function, arguments)?),
        Term::Chain { first, rest } => Side::Typed(arithmetic::chain(visible, first, rest)?),
        Term::Negate(inner) => Side::Typed(arithmetic::negate(visible, inner)?),
    })
}

/// Where a constant is likely, a word that is no field may be a text without its quotes.
fn or_text(problem: Problem, name: &str) -> Problem {
    let is_word = name.len() <= 64 && name.chars().all(char::is_alphanumeric);
    match problem.code == Code::UnknownField && problem.details.is_empty() && is_word {
        true => problem.detail(format!("text stands in single quotes: '{name}'")),
        false => problem,
    }
}

/// On the left of an operator, as the first argument of a function and in arithmetic, a quoted text is a field when it
/// can only be meant so: a readable field has exactly this name, and the name cannot be written without quotes.
pub(crate) fn resolve_first<'a>(visible: &Visible<'_>, term: &'a Term) -> Result<Side<'a>, Problem> {
    match term {
        Term::Literal(Literal::Text(text)) if !is_bare_name(text) && visible.find(text).is_some() => {
            Ok(Side::Typed(field(visible, text)?))
        }
        Term::Name(name) => Ok(Side::Typed(field(visible, name)?)),
        _ => resolve(visible, term),
    }
}

fn field(visible: &Visible<'_>, name: &str) -> Result<Typed, Problem> {
    let field = match visible.find(name) {
        None if name.contains('/') => {
            return Err(invalid(
                "paths to other entities are not served yet; name a field of this entity, and read the other one at its \
                 own address"
                    .to_owned(),
            ));
        }
        None => return Err(advised(visible, name)),
        Some(field) => field,
    };
    let ty = Box::new(visible.entity.fields[field].ty.clone());
    let what = format!("the field {:?}", visible.entity.fields[field].name);
    Ok(Typed { value: Value::Field(field), ty, what })
}

/// No such field, and what may have been meant.
fn advised(visible: &Visible<'_>, name: &str) -> Problem {
    let problem = visible.unknown(name);
    match rest::advice_on_name(name, &|field| visible.spelt(field)) {
        Some(advice) => problem.detail(advice),
        None => problem,
    }
}

/// A literal that nothing typed stands beside, as what it looks like.
pub(crate) fn natural(literal: &Literal) -> Result<Typed, Problem> {
    let oid = match literal {
        Literal::Null => {
            return Err(invalid(
                "null stands in a computation, which would be null; compare with eq null".to_owned(),
            ));
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
            return Err(invalid(format!("{literal} is an enum value; compare it with a field of that enum")));
        }
    };
    let ty = Box::new(family::base(oid));
    let bind = value::literal(&ty, literal)
        .map_err(|misfit| invalid(format!("a constant is {}: {misfit}", ty.name)))?;
    Ok(Typed { value: Value::Bind(bind), ty, what: "the constant".to_owned() })
}

/// The smaller of integer and bigint that holds a whole number.
fn whole(text: &str) -> Option<u32> {
    let number: i64 = text.parse().ok().filter(|_| !text.starts_with('+'))?;
    Some(if i32::try_from(number).is_ok() { 23 } else { 20 })
}
