//! Which of the values of a write PostgreSQL does not take, asked once it has refused the write and named no column.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use rowgate_core::problem::{Code, Problem};

use super::{Compiled, labels_of};
use crate::catalog::{Entity, Field, TypeKind};
use crate::resolve::{in_row, quoted};
use crate::shape::{Column, Encoding, Shape, label};
use crate::text::{Bind, Format, Sql};

/// `text[]`
const TEXT_ARRAY: u32 = 1009;
/// Types below came with PostgreSQL.
const FIRST_OWN: u32 = 16_384;
/// As many misfits as are told at once.
const MOST: u64 = 8;

/// The question about those values of a write that may not fit.
#[derive(Debug, Clone)]
pub struct Suspects {
    /// Gives a [`Misfit`] for each row.
    pub sql: Sql,
    pub shape: Arc<Shape>,
    entity: Arc<Entity>,
    /// Field and row of each, in the order of the question.
    values: Vec<(u16, Option<u16>)>,
}

/// A value that does not fit, as PostgreSQL says.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Misfit {
    /// Its place in the question, from 1.
    n: usize,
    code: String,
}

impl Compiled {
    /// Every value beside the type of its column, as one statement. `None`: PostgreSQL has read each as what it is stored as,
    /// since no column has a modifier or a type of the tenant's own.
    #[must_use]
    pub fn suspects(&self) -> Option<Suspects> {
        let mut values = BTreeMap::new();
        for bind in self.sql.binds() {
            let Some(at) = bind.field else { continue };
            let field = self.entity.fields.get(usize::from(at)).filter(|field| may_misfit(field, bind));
            if let Some((field, text)) = field.zip(text(bind)) {
                // by fields, so that PostgreSQL looks each type up once
                values.insert((at, bind.row), (text, field.ty.name.as_str()));
            }
        }
        if values.is_empty() {
            return None;
        }
        let (texts, types) = (values.values().map(|(text, _)| text.as_str()), values.values().map(|it| it.1));
        let mut sql = Sql::new();
        sql.lit("select u.n, i.sql_error_code from rows from (pg_catalog.unnest(").bind(array(texts));
        sql.lit("), pg_catalog.unnest(").bind(array(types)).lit(
            ")) with ordinality u (value, type, n) cross join lateral pg_catalog.pg_input_error_info(u.value, u.type) i \
             where i.sql_error_code is not null limit ",
        );
        sql.number(MOST);
        let column = |name: &str, encoding| Column { label: Some(label(name)), encoding };
        let columns = vec![column("n", Encoding::Int8), column("code", Encoding::Text)];
        let shape = Arc::new(Shape { columns, position: Vec::new(), count: None });
        Some(Suspects { sql, shape, entity: Arc::clone(&self.entity), values: values.into_keys().collect() })
    }

    /// What may have failed where each value fits by itself: what the database works out from fields that were sent, as far
    /// as the key `may_read` all of it.
    #[must_use]
    pub fn worked_out(&self, sqlstate: &str, may_read: impl Fn(usize) -> bool) -> Problem {
        let fails = match sqlstate {
            "22012" => "divides by zero",
            "22003" | "22008" => "leaves its range",
            _ => "does not take them",
        };
        let Compiled { entity, sql, .. } = self;
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
        let what = format!("a computation of the table with these values {fails}{such}; change them");
        Problem::new(Code::InvalidValue, what)
    }
}

impl Suspects {
    /// What is told of those that were found, of which `None` is told where there are none. A domain's own check is a rule,
    /// not a type. The labels of an enum are told of fields that the key `may_read`.
    #[must_use]
    pub fn told(&self, misfits: &[Misfit], may_read: impl Fn(usize) -> bool) -> Option<Problem> {
        let mut told: Option<Problem> = None;
        for Misfit { n, code } in misfits {
            let (at, row) = *self.values.get(n.checked_sub(1)?)?;
            let field = self.entity.fields.get(usize::from(at))?;
            let what = format!(
                "the field {:?} is {}{}",
                field.name,
                field.ty.name,
                wants(field, code, may_read(usize::from(at)))
            );
            told = Some(match told {
                None => {
                    let is_rule = ["23514", "23502"].contains(&code.as_str());
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
}

/// PostgreSQL has read the value without the modifier of its column, or as what stands below a domain.
fn may_misfit(field: &Field, bind: &Bind) -> bool {
    let ty = &field.ty;
    let is_enum = ty.kind == TypeKind::Enum && ty.oid == ty.base_oid;
    // of a version that is named there is a list
    bind.oid == ty.base_oid && (field.rounds_to.is_some() || FIRST_OWN <= ty.oid && !is_enum)
}

/// As the type's own reader takes it. `None` for NULL.
fn text(bind: &Bind) -> Option<String> {
    let value = bind.value.as_ref()?;
    match bind.format {
        Format::Text => String::from_utf8(value.clone()).ok(),
        // of all values that are sent only bytes are
        Format::Binary => {
            Some(value.iter().fold("\\x".to_owned(), |text, byte| text + &format!("{byte:02x}")))
        }
    }
}

fn array<'a>(items: impl Iterator<Item = &'a str>) -> Bind {
    let mut text = "{".to_owned();
    for (i, item) in items.enumerate() {
        text.push_str(if i == 0 { "" } else { "," });
        quoted(item, '\\', &mut text);
    }
    text.push('}');
    Bind::text(TEXT_ARRAY, text)
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
        (_, None) => ", and the value beside it is none of that type".to_owned(),
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
