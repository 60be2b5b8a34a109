//! What each function takes and gives. Moments are read in UTC; lengths and positions are counted in characters, from 0;
//! halves of decimals are rounded away from zero, and those of floats to the even neighbour, as PostgreSQL does.

use super::refusal::{FilterRefusal, Subject};
use super::term::{self, Side, Typed};
use crate::query::{Cast, Value};
use crate::request::{Function, Literal, Term};
use crate::resolve::value::family::{self, Family};
use crate::resolve::visible::Visible;

/// What an argument has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Text,
    /// A position or a length.
    Whole,
    Number,
    /// With a date in it.
    Day,
    /// With a time of day in it.
    Clock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// An oid of `pg_type`.
    Type(u32),
    /// The type of the argument, real aside, which becomes double precision.
    Same,
}

const TEXT: Gives = Gives::Type(25);
const BOOL: Gives = Gives::Type(16);
const INTEGER: Gives = Gives::Type(23);

/// Arguments, how many of them may be left out at the end, and the result.
fn signature(function: Function) -> (&'static [Takes], usize, Gives) {
    use Takes::{Clock, Day, Number, Text, Whole};
    match function {
        Function::Contains | Function::StartsWith | Function::EndsWith => (&[Text, Text], 0, BOOL),
        Function::ToLower | Function::ToUpper | Function::Trim => (&[Text], 0, TEXT),
        Function::Length => (&[Text], 0, INTEGER),
        Function::IndexOf => (&[Text, Text], 0, INTEGER),
        Function::Substring => (&[Text, Whole, Whole], 1, TEXT),
        Function::Concat => (&[Text, Text], 0, TEXT),
        Function::Year | Function::Month | Function::Day => (&[Day], 0, INTEGER),
        Function::Hour | Function::Minute | Function::Second => (&[Clock], 0, INTEGER),
        Function::Date => (&[Day], 0, Gives::Type(1082)),
        Function::Time => (&[Clock], 0, Gives::Type(1083)),
        Function::Round | Function::Floor | Function::Ceiling => (&[Number], 0, Gives::Same),
    }
}

pub(crate) fn call(
    visible: &Visible<'_>,
    function: Function,
    terms: &[Term],
) -> Result<Typed, FilterRefusal> {
    let (takes, optional, gives) = signature(function);
    if takes.len() < terms.len() || terms.len() + optional < takes.len() {
        let (takes, given) = (takes.len(), terms.len());
        return Err(FilterRefusal::NumberOfArguments { function, takes, optional, given });
    }
    let mut arguments = Vec::with_capacity(terms.len());
    let mut first = None;
    for (i, (term, &takes)) in terms.iter().zip(takes).enumerate() {
        let side = if i == 0 { term::resolve_first(visible, term)? } else { term::resolve(visible, term)? };
        let argument = match side {
            Side::Typed(typed) => typed,
            Side::Literal(literal) => constant(function, takes, literal)?,
        };
        if !takes.fits(&argument) {
            return Err(FilterRefusal::Argument { n: i + 1, function, takes, found: argument.found() });
        }
        first.get_or_insert(argument.ty.base_oid);
        if gives == Gives::Same && matches!(Family::of(&argument.ty), Family::Integer(..)) {
            // Whole already; PostgreSQL would round it as a float.
            return Ok(Typed { ty: Box::new(family::base(argument.ty.base_oid)), ..argument });
        }
        arguments.push(cast(takes, argument));
    }
    let ty = Box::new(family::base(match (gives, first) {
        (Gives::Type(oid), _) => oid,
        (Gives::Same, Some(700) | None) => 701,
        (Gives::Same, Some(oid)) => oid,
    }));
    Ok(Typed { value: Value::Call { function, arguments }, ty, subject: Subject::Function(function) })
}

impl Takes {
    fn fits(self, typed: &Typed) -> bool {
        let family = Family::of(&typed.ty);
        match self {
            Takes::Text => matches!(family, Family::Text(_)),
            Takes::Whole => matches!(family, Family::Integer(..)) && typed.ty.base_oid != family::OID,
            Takes::Number => {
                matches!(family, Family::Integer(..) | Family::Numeric | Family::Float4 | Family::Float8)
                    && typed.ty.base_oid != family::OID
            }
            Takes::Day => matches!(family, Family::Date | Family::Timestamp | Family::TimestampTz),
            Takes::Clock => {
                matches!(family, Family::Timestamp | Family::TimestampTz | Family::Time | Family::TimeTz)
            }
        }
    }
}

/// A constant as an argument is what it looks like.
fn constant(function: Function, takes: Takes, literal: &Literal) -> Result<Typed, FilterRefusal> {
    let negative =
        matches!(literal, Literal::Number(text) if text.starts_with('-') && text.parse() != Ok(0_i64));
    if takes == Takes::Whole && negative {
        return Err(FilterRefusal::Negative { function });
    }
    term::natural(literal)
}

fn cast(takes: Takes, typed: Typed) -> Value {
    let to = match (takes, typed.ty.base_oid) {
        (Takes::Text, oid) if oid != 25 => Some(Cast::Text),
        (Takes::Whole, 20) => Some(Cast::Integer),
        (Takes::Day | Takes::Clock, 1184 | 1266) => Some(Cast::Utc),
        _ => None,
    };
    match to {
        Some(cast) => Value::Cast(Box::new(typed.value), cast),
        None => typed.value,
    }
}
