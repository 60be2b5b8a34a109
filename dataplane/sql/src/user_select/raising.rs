//! Which expressions may raise by what stands in a row. What is not known here to raise for no value counts as one that may.

use sqlparser::ast::{BinaryOperator as B, Expr, UnaryOperator as U, Value};

/// Aggregates and window functions are worked out for rows that a view gives; the others raise for no value.
const TOTAL_FUNCTIONS: &[&str] = &[
    "array_agg",
    "avg",
    "bool_and",
    "bool_or",
    "coalesce",
    "count",
    "current_date",
    "current_timestamp",
    "dense_rank",
    "every",
    "greatest",
    "json_agg",
    "jsonb_agg",
    "least",
    "lower",
    "max",
    "min",
    "now",
    "nullif",
    "rank",
    "row_number",
    "string_agg",
    "sum",
    "upper",
];

pub(super) fn function_raises(name: &str) -> bool {
    !TOTAL_FUNCTIONS.contains(&name)
}

/// The expression itself, whatever stands within it; calls are judged by [`function_raises`].
pub(super) fn raises(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { op, .. }
        | Expr::AnyOp { compare_op: op, .. }
        | Expr::AllOp { compare_op: op, .. } => !is_total(op),
        Expr::UnaryOp { op, .. } => !matches!(op, U::Not | U::Plus),
        Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
            escape_char.is_some() || !is_plain(pattern)
        }
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Value(_)
        | Expr::Nested(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::Between { .. }
        | Expr::In { .. }
        | Expr::Case { .. }
        | Expr::Exists { .. }
        | Expr::Tuple(_)
        | Expr::Collate { .. }
        | Expr::TypedString(_)
        | Expr::Interval(_)
        | Expr::Function(_) => false,
        _ => true,
    }
}

/// The operators by which types are ordered.
fn is_total(op: &B) -> bool {
    matches!(op, B::Gt | B::Lt | B::GtEq | B::LtEq | B::Eq | B::NotEq | B::And | B::Or)
}

/// A pattern whose end cannot be found to be wrong once enough of a value matches.
fn is_plain(pattern: &Expr) -> bool {
    match pattern {
        Expr::Value(value) => matches!(&value.value, Value::SingleQuotedString(text) if !text.contains('\\')),
        _ => false,
    }
}
