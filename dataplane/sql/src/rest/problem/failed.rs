//! What is said of values that PostgreSQL refused, once the statement has run.

use std::fmt::Write as _;

use rowgate_core::problem::{Code, Problem};

use super::in_row;
use super::write::another_key;
use crate::catalog::{Entity, Field, Param};
use crate::compile::{CompiledCall, CompiledRead, CompiledWrite, ValueDiagnosis, ValueProbe};
use crate::query::Check;
use crate::text::{Bind, Sql};

/// What is told of a value of a call that PostgreSQL cannot read as its parameter's type: the `n`-th of the statement, from 1.
#[must_use]
pub fn invalid_argument(compiled: &CompiledCall, n: usize) -> Option<Problem> {
    let bind = nth(&compiled.sql, n)?;
    let Param { name, ty, .. } = compiled.entity.routine.as_ref()?.params.get(usize::from(bind.field?))?;
    let what = format!("the parameter {name:?} is {}, and its value is not valid for that type", ty.name);
    Some(Problem::new(Code::InvalidValue, what))
}

/// What is told of a value of a read that PostgreSQL cannot read as what it is compared with: the `n`-th of the statement,
/// from 1. `None` for one that stands beside no field. The labels of an enum are told of fields that the key `may_read`.
#[must_use]
pub fn invalid_condition(
    compiled: &CompiledRead,
    n: usize,
    may_read: impl Fn(usize) -> bool,
) -> Option<Problem> {
    let bind = nth(&compiled.sql, n)?;
    match compiled.binding {
        Some(_) => not_valid(&compiled.entity, bind, (Code::InvalidFilter, '\''), may_read),
        None => not_valid(&compiled.entity, bind, (Code::InvalidValue, '"'), may_read),
    }
}

/// As [`invalid_condition`], of a value that is written, or that names the row.
#[must_use]
pub fn invalid_value(
    compiled: &CompiledWrite,
    n: usize,
    may_read: impl Fn(usize) -> bool,
) -> Option<Problem> {
    not_valid(&compiled.entity, nth(&compiled.sql, n)?, (Code::InvalidValue, '"'), may_read)
}

fn nth(sql: &Sql, n: usize) -> Option<&Bind> {
    sql.binds().get(n.checked_sub(1)?)
}

/// `quote`: that of texts in the place where the value was written.
fn not_valid(
    entity: &Entity,
    bind: &Bind,
    (code, quote): (Code, char),
    may_read: impl Fn(usize) -> bool,
) -> Option<Problem> {
    let at = usize::from(bind.field?);
    let Field { name, ty, labels, .. } = entity.fields.get(at)?;
    let is_key = code != Code::InvalidFilter && entity.key.contains(&at);
    let what = if is_key { "the key field" } else { "the field" };
    let what = match labels_of(labels, quote).filter(|_| may_read(at)) {
        Some(labels) => format!("{what} {name:?} is {}: write {labels}", ty.name),
        None => format!("{what} {name:?} is {}, and the value is not valid for that type", ty.name),
    };
    Some(in_row(Problem::new(code, what), bind.row))
}

/// A check of a write that PostgreSQL found untrue.
#[must_use]
pub fn untrue(entity: &Entity, check: &Check) -> Problem {
    match check {
        Check::Same { field, .. } => another_key(&entity.fields[*field].name),
        Check::Kept { field, .. } => {
            let field = &entity.fields[*field];
            let what = format!(
                "the key field {:?} is {}, whose column would store a different value than the one in the URL; write the value in the URL as the column stores it",
                field.name, field.ty.name
            );
            Problem::new(Code::InvalidValue, what)
        }
    }
}

/// What may have failed where each value fits by itself: what the database works out from fields that were sent, as far
/// as the key `may_read` all of it.
#[must_use]
pub fn worked_out(compiled: &CompiledWrite, sqlstate: &str, may_read: impl Fn(usize) -> bool) -> Problem {
    let fails = match sqlstate {
        "22012" => "divides by zero with these values",
        "22003" | "22008" => "is out of range with these values",
        _ => "does not accept these values",
    };
    let CompiledWrite { entity, sql, .. } = compiled;
    let is_sent = |at: usize| sql.binds().iter().any(|bind| bind.field.map(usize::from) == Some(at));
    let mut such = String::new();
    for (_, field) in entity.fields.iter().enumerate().filter(|(at, _)| may_read(*at)) {
        let made_of = field.made_of.iter().map(|column| entity.position(column.as_str()));
        let made_of: Vec<usize> = made_of.flatten().filter(|at| may_read(*at)).collect();
        let sent =
            made_of.iter().filter(|at| is_sent(**at)).map(|at| format!("{:?}", entity.fields[*at].name));
        let sent: Vec<String> = sent.collect();
        if made_of.len() == field.made_of.len() && !sent.is_empty() {
            such += if such.is_empty() { ", such as that of" } else { " and that of" };
            write!(such, " {:?} ({}) from {}", field.name, field.ty.name, sent.join(", "))
                .expect("writing to a string");
        }
    }
    let what = format!("an expression of the table {fails}{such}; change them");
    Problem::new(Code::InvalidValue, what)
}

/// What is told of those that were found, of which `None` is told where there are none. A domain's own check is a rule,
/// not a type. The labels of an enum are told of fields that the key `may_read`.
#[must_use]
pub fn diagnosed(
    probe: &ValueProbe,
    diagnoses: &[ValueDiagnosis],
    may_read: impl Fn(usize) -> bool,
) -> Option<Problem> {
    let mut told: Option<Problem> = None;
    for diagnosis in diagnoses {
        let (field, at, row) = probe.of(diagnosis)?;
        let what = format!(
            "the field {:?} is {}{}",
            field.name,
            field.ty.name,
            wants(field, &diagnosis.code, may_read(at))
        );
        told = Some(match told {
            None => {
                let is_rule = ["23514", "23502"].contains(&diagnosis.code.as_str());
                let code = if is_rule { Code::ConstraintViolation } else { Code::InvalidValue };
                in_row(Problem::new(code, what), row)
            }
            Some(problem) => {
                let place = row.map_or(String::new(), |row| format!(", in the row at index {row}"));
                problem.detail(what + &place)
            }
        });
    }
    told
}

/// As many labels of an enum as a message lists.
const MAX_LABELS: usize = 20;

/// What a value of an enum may be, in the quotes of the place where it is written. `None`: it is no enum.
fn labels_of(labels: &[String], quote: char) -> Option<String> {
    let quoted = |label: &String| match quote {
        '\'' => format!("'{}'", label.replace('\'', "''")),
        _ => format!("{label:?}"),
    };
    let listed: Vec<String> = labels.iter().take(MAX_LABELS).map(quoted).collect();
    let more = match labels.len().checked_sub(MAX_LABELS) {
        Some(n @ 1..) => format!(" or one of {n} more"),
        _ => String::new(),
    };
    (!listed.is_empty()).then(|| format!("one of {}{more}", listed.join(", ")))
}

/// What to write instead, by the column's modifier where that is what was missed.
fn wants(field: &Field, code: &str, may_read: bool) -> String {
    let limit = field.rounds_to.as_ref().filter(|_| ["22001", "22003", "22026"].contains(&code));
    let limit = limit.and_then(|ty| limit_of(ty.as_str()));
    match (code, limit) {
        ("23514" | "23502", _) => ", which has a rule that forbids the value; change it".to_owned(),
        (_, Some(limit)) => format!(": {limit}"),
        (_, None) if may_read && !field.labels.is_empty() => {
            labels_of(&field.labels, '"').map_or_else(String::new, |labels| format!(": write {labels}"))
        }
        (_, None) => ", and the value is not valid for that type".to_owned(),
    }
}

/// Of a built-in type with its modifier, such as `character varying(20)[]`.
fn limit_of(ty: &str) -> Option<String> {
    let (ty, each) = match ty.strip_suffix("[]") {
        Some(ty) => (ty, " in each value"),
        None => (ty, ""),
    };
    let (name, modifier) = ty.strip_suffix(')')?.split_once('(')?;
    let limit = match name {
        "character varying" | "character" => format!("write at most {}", several(modifier, "character")),
        "bit" => format!("write exactly {}", several(modifier, "bit")),
        "bit varying" => format!("write at most {}", several(modifier, "bit")),
        "numeric" => {
            let (precision, scale) = modifier.split_once(',')?;
            let digits = precision.parse::<i32>().ok()? - scale.parse::<i32>().ok()?;
            match digits {
                1.. => {
                    let digits = several(&digits.to_string(), "digit");
                    format!("write a number with at most {digits} before the point")
                }
                _ => format!("write a number that is less than 1e{digits} away from 0"),
            }
        }
        _ => return None,
    };
    Some(limit + each)
}

fn several(n: &str, word: &str) -> String {
    let ending = if n == "1" { "" } else { "s" };
    format!("{n} {word}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modifier_says_what_to_write() {
        for (ty, expected) in [
            ("character varying(20)", Some("write at most 20 characters")),
            ("character(3)[]", Some("write at most 3 characters in each value")),
            ("bit(1)", Some("write exactly 1 bit")),
            ("bit varying(4)", Some("write at most 4 bits")),
            ("numeric(5,2)", Some("write a number with at most 3 digits before the point")),
            ("numeric(3,-2)", Some("write a number with at most 5 digits before the point")),
            ("numeric(3,3)", Some("write a number that is less than 1e0 away from 0")),
            ("numeric(2,5)", Some("write a number that is less than 1e-3 away from 0")),
            ("timestamp(0) without time zone", None),
            ("interval(3)", None),
            ("text", None),
        ] {
            assert_eq!(limit_of(ty).as_deref(), expected, "{ty}");
        }
    }
}
