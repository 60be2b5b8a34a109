//! Terms as SQL. A text of the caller is only ever searched for, never a pattern.

pub(super) mod probe;

use super::column_of;
use super::predicate::{Row, related};
use crate::query::{Cast, Value};
use crate::request::{Arithmetic, Function};
use crate::text::Sql;

/// Writes `value`; `nested`: it stands where something binds tighter than arithmetic.
pub(super) fn write(sql: &mut Sql, row: Row<'_>, value: &Value, nested: bool) {
    match value {
        Value::Field(field) => column_of(sql, row.alias, row.entity, *field),
        Value::Bind(bind) => {
            sql.bind(bind.clone());
        }
        Value::Referenced(of) => related::field(sql, row, of),
        Value::Call { function, arguments } => call(sql, row, *function, arguments),
        Value::Chain { first, rest } => {
            sql.lit(if nested { "(" } else { "" });
            write(sql, row, first, true);
            for (op, value) in rest {
                sql.lit(operator(*op));
                write(sql, row, value, true);
            }
            sql.lit(if nested { ")" } else { "" });
        }
        Value::Negate(inner) => {
            sql.lit("(- ");
            write(sql, row, inner, true);
            sql.lit(")");
        }
        Value::Cast(inner, cast) => {
            sql.lit(if *cast == Cast::Utc { "pg_catalog.timezone('UTC', " } else { "" });
            write(sql, row, inner, true);
            sql.lit(match cast {
                Cast::Text => "::pg_catalog.text",
                Cast::Integer => "::pg_catalog.int4",
                Cast::Utc => ")",
            });
        }
    }
}

/// Each argument is written once, so that calls within calls do not double.
///
/// Searching compares characters, as `collate "C"` does; under a collation that knows no order of bytes PostgreSQL would
/// refuse it, or find what only looks alike.
///
/// `starts_with` is leakproof, so PostgreSQL may try it before a policy, and it knows the range that it stands for.
/// `explain` on PostgreSQL 18, 100,000 rows under a policy `owner = current_user`:
///
/// | Condition | Index | Plan |
/// |---|---|---|
/// | `starts_with(d collate "C", $1)` | in a C.UTF-8 database, or of a column `collate "C"` | range `d >= 'abc' and d < 'abd'`, rechecked |
/// | the same over `varchar` | the same | the same |
/// | the same | `text_pattern_ops` | range by `~>=~` and `~<~`, rechecked |
/// | the same | of another collation | whole table |
/// | `d like 'abc%'` (never written here) | any | whole table: not leakproof |
/// | `lower(d) = $1`, and every other function | any | whole table |
///
/// The range comes from the value, so the statement is planned with its values each time, which PostgreSQL goes on
/// doing for as long as that is cheaper (shown after the seventh run); a forced generic plan reads the whole table.
fn call(sql: &mut Sql, row: Row<'_>, function: Function, arguments: &[Value]) {
    let (open, between, close) = match function {
        Function::Contains => ("(pg_catalog.strpos(", C_THEN, ") > 0)"),
        Function::StartsWith => ("pg_catalog.starts_with(", C_THEN, ")"),
        Function::EndsWith => (
            "pg_catalog.starts_with(pg_catalog.reverse(",
            ") collate pg_catalog.\"C\", pg_catalog.reverse(",
            "))",
        ),
        Function::IndexOf => ("(pg_catalog.strpos(", C_THEN, ") - 1)"),
        Function::ToLower => ("pg_catalog.lower(", "", ")"),
        Function::ToUpper => ("pg_catalog.upper(", "", ")"),
        Function::Trim => ("pg_catalog.btrim(", "", r", E' \t\n\x0b\f\r')"),
        Function::Length => ("pg_catalog.char_length(", "", ")"),
        Function::Concat => ("(", " || ", ")"),
        Function::Substring => return substring(sql, row, arguments),
        // Infinite dates have no year; PostgreSQL would call it infinite, which is no integer.
        Function::Year => {
            ("nullif(nullif(extract(year from ", "", "), 'infinity'), '-infinity')::pg_catalog.int4")
        }
        Function::Month => ("extract(month from ", "", ")::pg_catalog.int4"),
        Function::Day => ("extract(day from ", "", ")::pg_catalog.int4"),
        Function::Hour => ("extract(hour from ", "", ")::pg_catalog.int4"),
        Function::Minute => ("extract(minute from ", "", ")::pg_catalog.int4"),
        // A cast alone would round 59.9 to 60.
        Function::Second => ("pg_catalog.floor(extract(second from ", "", "))::pg_catalog.int4"),
        Function::Date => ("(", "", ")::pg_catalog.date"),
        Function::Time => ("(", "", ")::pg_catalog.time"),
        Function::Round => ("pg_catalog.round(", "", ")"),
        Function::Floor => ("pg_catalog.floor(", "", ")"),
        Function::Ceiling => ("pg_catalog.ceil(", "", ")"),
    };
    sql.lit(open);
    for (i, argument) in arguments.iter().enumerate() {
        sql.lit(if i == 0 { "" } else { between });
        write(sql, row, argument, true);
    }
    sql.lit(close);
}

const C_THEN: &str = " collate pg_catalog.\"C\", ";

/// A computed position before the first character counts from before it, as in PostgreSQL; a constant is never
/// negative.
fn substring(sql: &mut Sql, row: Row<'_>, arguments: &[Value]) {
    sql.lit("pg_catalog.substr(");
    for (i, argument) in arguments.iter().enumerate() {
        sql.lit(if i == 0 { "" } else { ", " });
        write(sql, row, argument, true);
        // PostgreSQL counts from 1.
        sql.lit(if i == 1 { " + 1" } else { "" });
    }
    sql.lit(")");
}

fn operator(op: Arithmetic) -> &'static str {
    match op {
        Arithmetic::Add => " + ",
        Arithmetic::Sub => " - ",
        Arithmetic::Mul => " * ",
        Arithmetic::Div => " / ",
        Arithmetic::Mod => " % ",
    }
}
