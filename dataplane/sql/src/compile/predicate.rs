//! Conditions as SQL.

pub(super) mod related;

use super::{column_of, operator, value};
use crate::catalog::{Entity, FieldType, Operators, TypeKind};
use crate::query::{MAX_BUILT, Predicate, Value};
use crate::request::Comparison;
use crate::text::Sql;

/// Rows that a condition is about, by their name in the statement: 0 is `t`, any other number `t<number>`.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) entity: &'a Entity,
    pub(super) alias: u64,
}

/// Writes `predicate` of the rows `t`; `nested`: it stands beside others, so chains need parentheses.
pub(super) fn write(sql: &mut Sql, entity: &Entity, predicate: &Predicate, nested: bool) {
    write_of(sql, Row { entity, alias: 0 }, predicate, nested);
}

/// As [`write()`], of any rows.
pub(super) fn write_of(sql: &mut Sql, row: Row<'_>, predicate: &Predicate, nested: bool) {
    let entity = row.entity;
    match predicate {
        Predicate::All(parts) => chain(sql, row, parts, " and ", nested),
        Predicate::Any(parts) => chain(sql, row, parts, " or ", nested),
        Predicate::Not(inner) => {
            sql.lit("not (");
            write_of(sql, row, inner, false);
            sql.lit(")");
        }
        Predicate::IsNull { value, negated } => {
            value::write(sql, row, value, true);
            // `is null` would also be true of a row value whose fields are all null.
            let composite =
                matches!(value, Value::Field(i) if entity.fields[*i].ty.kind == TypeKind::Composite);
            sql.lit(match (composite, negated) {
                (false, false) => " is null",
                (false, true) => " is not null",
                (true, false) => " is not distinct from null",
                (true, true) => " is distinct from null",
            });
        }
        Predicate::Compare { left, op, right } => {
            value::write(sql, row, left, false);
            operator(sql, field(entity, left), symbol(*op));
            value::write(sql, row, right, false);
        }
        Predicate::OneOf { value, values } => {
            value::write(sql, row, value, false);
            let ty = field(entity, value);
            // `in` would look for `=` without a schema.
            let (open, close) = match ty.map(|ty| &ty.operators) {
                Some(Operators::In(_)) => {
                    operator(sql, ty, "=");
                    ("any (array[", "])")
                }
                _ => (" in (", ")"),
            };
            for (i, value) in values.iter().enumerate() {
                sql.lit(if i == 0 { open } else { ", " });
                value::write(sql, row, value, false);
            }
            sql.lit(close);
        }
        Predicate::Is(value) => value::write(sql, row, value, false),
        Predicate::Within { copies, inner } => within(sql, row, copies, inner),
        Predicate::NotTrue(inner) => {
            sql.lit("(");
            write_of(sql, row, inner, false);
            sql.lit(") is not true");
        }
        Predicate::Related(related) => related::write(sql, row, related),
    }
}

/// PostgreSQL knows the length of a text without reading it, and works out only the branch of a `case` that it takes. The
/// other one asks for a text that is too long for any, and depends on a field, or it would be worked out while planning.
fn within(sql: &mut Sql, row: Row<'_>, copies: &[(usize, u64)], inner: &Predicate) {
    let length = |sql: &mut Sql, field: usize| {
        sql.lit("coalesce(pg_catalog.octet_length(");
        column_of(sql, row.alias, row.entity, field);
        sql.lit("), 0)");
    };
    sql.lit("case when ");
    for (i, (field, times)) in copies.iter().enumerate() {
        sql.lit(if i == 0 { "" } else { " + " });
        length(sql, *field);
        sql.lit("::pg_catalog.int8 * ").number(*times);
    }
    sql.lit(" <= ").number(MAX_BUILT).lit(" then ");
    write_of(sql, row, inner, false);
    sql.lit(" else pg_catalog.repeat(' ', 1073741823");
    if let Some((field, _)) = copies.first() {
        sql.lit(" + ");
        length(sql, *field);
    }
    sql.lit(") is null end");
}

fn chain(sql: &mut Sql, row: Row<'_>, parts: &[Predicate], word: &'static str, nested: bool) {
    if parts.is_empty() {
        sql.lit(if word == " or " { "false" } else { "true" });
    }
    let group = nested && 1 < parts.len();
    sql.lit(if group { "(" } else { "" });
    for (i, part) in parts.iter().enumerate() {
        sql.lit(if i == 0 { "" } else { word });
        write_of(sql, row, part, true);
    }
    sql.lit(if group { ")" } else { "" });
}

/// The type of a value that is a field. Only those have types that bring operators of their own.
fn field<'a>(entity: &'a Entity, value: &'a Value) -> Option<&'a FieldType> {
    match value {
        Value::Field(field) => Some(&entity.fields[*field].ty),
        Value::Referenced(of) => of.references.last().map(|last| &last.entity.fields[of.field].ty),
        _ => None,
    }
}

pub(super) fn symbol(op: Comparison) -> &'static str {
    match op {
        Comparison::Eq => "=",
        Comparison::Ne => "<>",
        Comparison::Gt => ">",
        Comparison::Ge => ">=",
        Comparison::Lt => "<",
        Comparison::Le => "<=",
    }
}
