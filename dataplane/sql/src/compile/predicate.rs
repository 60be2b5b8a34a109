//! Conditions as SQL.

use super::column;
use crate::catalog::{Entity, TypeKind};
use crate::query::{Comparand, Predicate};
use crate::request::Comparison;
use crate::text::Sql;

/// Writes `predicate`; `nested`: it stands beside others, so chains need parentheses.
pub(super) fn write(sql: &mut Sql, entity: &Entity, predicate: &Predicate, nested: bool) {
    match predicate {
        Predicate::All(parts) => chain(sql, entity, parts, " and ", nested),
        Predicate::Any(parts) => chain(sql, entity, parts, " or ", nested),
        Predicate::Not(inner) => {
            sql.lit("not (");
            write(sql, entity, inner, false);
            sql.lit(")");
        }
        Predicate::IsNull { field, negated } => {
            column(sql, entity, *field);
            // `is null` would also be true of a row value whose fields are all null.
            sql.lit(match (entity.fields[*field].ty.kind == TypeKind::Composite, negated) {
                (false, false) => " is null",
                (false, true) => " is not null",
                (true, false) => " is not distinct from null",
                (true, true) => " is distinct from null",
            });
        }
        Predicate::Compare { field, op, with } => {
            column(sql, entity, *field);
            sql.lit(operator(*op));
            match with {
                Comparand::Value(bind) => {
                    sql.bind(bind.clone());
                }
                Comparand::Field(other) => column(sql, entity, *other),
            }
        }
        Predicate::OneOf { field, values } => {
            column(sql, entity, *field);
            for (i, value) in values.iter().enumerate() {
                sql.lit(if i == 0 { " in (" } else { ", " }).bind(value.clone());
            }
            sql.lit(")");
        }
    }
}

fn chain(sql: &mut Sql, entity: &Entity, parts: &[Predicate], word: &'static str, nested: bool) {
    let group = nested && 1 < parts.len();
    sql.lit(if group { "(" } else { "" });
    for (i, part) in parts.iter().enumerate() {
        sql.lit(if i == 0 { "" } else { word });
        write(sql, entity, part, true);
    }
    sql.lit(if group { ")" } else { "" });
}

fn operator(op: Comparison) -> &'static str {
    match op {
        Comparison::Eq => " = ",
        Comparison::Ne => " <> ",
        Comparison::Gt => " > ",
        Comparison::Ge => " >= ",
        Comparison::Lt => " < ",
        Comparison::Le => " <= ",
    }
}
