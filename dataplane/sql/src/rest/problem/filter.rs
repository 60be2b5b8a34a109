//! A filter that is refused, in the words of `$filter`.

use rowgate_core::name::EntityName;
use rowgate_core::problem::{Code, Problem};

use super::value::wanted;
use super::{Spelt, advice_on_name, closed, no_relationship, unknown};
use crate::resolve::{FilterRefusal, Found, Subject, Takes};

/// `field` finds the fields that the caller may read.
pub(super) fn of<'a>(
    entity: &EntityName,
    field: &dyn Fn(&str) -> Option<Spelt<'a>>,
    refusal: FilterRefusal,
) -> Problem {
    let what = match refusal {
        FilterRefusal::NoField { unknown: name, may_be_text } => {
            let problem = unknown(entity, &name);
            let problem = match advice_on_name(&name.name, field) {
                Some(advice) => problem.detail(advice),
                None => problem,
            };
            let name = &name.name;
            let is_word = name.len() <= 64 && name.chars().all(char::is_alphanumeric);
            return match may_be_text && problem.details.is_empty() && is_word {
                true => problem.detail(format!("put text in single quotes: '{name}'")),
                false => problem,
            };
        }
        FilterRefusal::NoRelationship(name) => return no_relationship(entity, &name),
        FilterRefusal::Closed(closure) => return closed(closure),
        FilterRefusal::ManyRows(name) => {
            format!("{name} may lead to several rows; write {name}/any(x: x/field eq 1) or {name}/all(...)")
        }
        FilterRefusal::SeveralEntities => {
            "fields of several entities are compared only one with one, as in customer/credit lt total; compare others with \
             constants, and join the comparisons with and"
                .to_owned()
        }
        FilterRefusal::TooManyPaths { max } => {
            format!("a comparison follows more than {max} relationships")
        }
        FilterRefusal::Related { entity, refusal } => return of(&entity, &|_| None, *refusal),
        FilterRefusal::NoNumber { of, found } => format!("{} takes numbers; {}", word(&of), say(&found)),
        FilterRefusal::Modulo { ty } => format!("mod takes whole and decimal numbers, not {ty}"),
        FilterRefusal::ConstantOf { of, ty, refusal } => {
            format!("{} takes a constant of type {ty} here: {}", word(&of), wanted(refusal))
        }
        FilterRefusal::Constant { ty, refusal } => format!("the constant must be of type {ty}: {}", wanted(refusal)),
        FilterRefusal::Compared { with, refusal } => format!("{}: {}", say(&with), wanted(refusal)),
        FilterRefusal::NumberOfArguments { function, takes, optional, given } => {
            let n = match (takes, optional) {
                (1, _) => "1 argument".to_owned(),
                (n, 0) => format!("{n} arguments"),
                (n, _) => format!("{} or {n} arguments", n - optional),
            };
            format!("{} takes {n}, not {given}", function.word())
        }
        FilterRefusal::Argument { n, function, takes, found } => {
            let takes = match takes {
                Takes::Text => "text",
                Takes::Whole => "a whole number",
                Takes::Number => "a number",
                Takes::Day => "a date or a timestamp",
                Takes::Clock => "a timestamp or a time",
            };
            format!("argument {n} of {} has to be {takes}; {}", function.word(), say(&found))
        }
        FilterRefusal::Negative { function } => {
            format!("positions and lengths of {} are counted from 0; write no negative number", function.word())
        }
        FilterRefusal::Null => {
            "a computation with null is null; compare with eq null".to_owned()
        }
        FilterRefusal::LooseEnum(literal) => {
            format!("{literal} is an enum value; compare it with a field of that enum")
        }
        FilterRefusal::NullOrder(op) => {
            format!("null has no order; write eq null or ne null, not {}", op.word())
        }
        FilterRefusal::NoCondition(Some(found)) => format!(
            "{}, which is not a condition by itself; compare it with one of eq, ne, gt, ge, lt, le, in",
            say(&found)
        ),
        FilterRefusal::NoCondition(None) => {
            "a constant is not a condition by itself; compare a field with one of eq, ne, gt, ge, lt, le, in"
                .to_owned()
        }
        FilterRefusal::Incomparable(both) => {
            format!("{} and {} cannot be compared", say(&both.0), say(&both.1))
        }
        FilterRefusal::NoComparison { found, op } => {
            format!("{}, which has no {}; ask for eq null or ne null", say(&found), op.word())
        }
        FilterRefusal::Steps { max } => {
            format!("$filter computes with decimals in more than {max} steps; split it into several requests")
        }
        FilterRefusal::Ranges { max } => {
            format!("$filter compares ranges more than {max} times; split it into several requests")
        }
    };
    Problem::new(Code::InvalidFilter, what)
}

/// `the field "id" is integer`.
fn say(Found { subject, ty }: &Found) -> String {
    match subject {
        Subject::Field(name) => format!("the field {name:?} is {ty}"),
        Subject::Constant => format!("the constant is {ty}"),
        Subject::Function(function) => format!("the function {} is {ty}", function.word()),
        Subject::Arithmetic(_) | Subject::Minus => format!("the result of {} is {ty}", word(subject)),
    }
}

fn word(subject: &Subject) -> String {
    match subject {
        Subject::Field(name) => name.clone(),
        Subject::Constant => "the constant".to_owned(),
        Subject::Function(function) => function.word().to_owned(),
        Subject::Arithmetic(op) => op.word().to_owned(),
        Subject::Minus => "a minus sign".to_owned(),
    }
}
