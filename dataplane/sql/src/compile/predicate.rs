//! Conditions as SQL.

use super::{column, operator, value};
use crate::catalog::{Entity, FieldType, Operators, TypeKind};
use crate::query::{MAX_BUILT, Predicate, Value};
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
        Predicate::IsNull { value, negated } => {
            value::write(sql, entity, value, true);
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
            value::write(sql, entity, left, false);
            operator(sql, field(entity, left), symbol(*op));
            value::write(sql, entity, right, false);
        }
        Predicate::OneOf { value, values } => {
            value::write(sql, entity, value, false);
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
                value::write(sql, entity, value, false);
            }
            sql.lit(close);
        }
        Predicate::Is(value) => value::write(sql, entity, value, false),
        Predicate::Within { copies, inner } => within(sql, entity, copies, inner),
    }
}

/// PostgreSQL knows the length of a text without reading it, and works out only the branch of a `case` that it takes. The
/// other one asks for a text that is too long for any, and depends on a field, or it would be worked out while planning.
fn within(sql: &mut Sql, entity: &Entity, copies: &[(usize, u64)], inner: &Predicate) {
    let length = |sql: &mut Sql, field: usize| {
        sql.lit("coalesce(pg_catalog.octet_length(");
        column(sql, entity, field);
        sql.lit("), 0)");
    };
    sql.lit("case when ");
    for (i, (field, times)) in copies.iter().enumerate() {
        sql.lit(if i == 0 { "" } else { " + " });
        length(sql, *field);
        sql.lit("::pg_catalog.int8 * ").number(*times);
    }
    sql.lit(" <= ").number(MAX_BUILT).lit(" then ");
    write(sql, entity, inner, false);
    sql.lit(" else pg_catalog.repeat(' ', 1073741823");
    if let Some((field, _)) = copies.first() {
        sql.lit(" + ");
        length(sql, *field);
    }
    sql.lit(") is null end");
}

fn chain(sql: &mut Sql, entity: &Entity, parts: &[Predicate], word: &'static str, nested: bool) {
    if parts.is_empty() {
        sql.lit(if word == " or " { "false" } else { "true" });
    }
    let group = nested && 1 < parts.len();
    sql.lit(if group { "(" } else { "" });
    for (i, part) in parts.iter().enumerate() {
        sql.lit(if i == 0 { "" } else { word });
        write(sql, entity, part, true);
    }
    sql.lit(if group { ")" } else { "" });
}

/// The type of a value that is a field. Only those have types that bring operators of their own.
fn field<'a>(entity: &'a Entity, value: &Value) -> Option<&'a FieldType> {
    match value {
        Value::Field(field) => Some(&entity.fields[*field].ty),
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
