//! Values in which no column stands.

use sqlparser::ast::{
    BinaryOperator as B, DataType, Expr, Function, FunctionArguments, TypedString, UnaryOperator as U, Value,
};

use crate::user_select::allowed::functions::NOW;

/// PostgreSQL works it out without a row: where it raises, it raises whatever rows there are.
pub(super) fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::TypedString(_) | Expr::Interval(_) => true,
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } | Expr::Cast { expr: inner, .. } => {
            is_constant(inner)
        }
        Expr::BinaryOp { left, op: _, right } => is_constant(left) && is_constant(right),
        Expr::Function(function) => is_now(function),
        _ => false,
    }
}

/// Likewise, and no column beside it is cast to a type out of whose range its values may be.
pub(super) fn is_of_plain_type(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::Interval(_) => true,
        Expr::TypedString(TypedString { data_type, .. }) => is_plain(data_type),
        Expr::Nested(inner) => is_of_plain_type(inner),
        Expr::UnaryOp { op: U::Minus | U::Plus, expr } => {
            matches!(&**expr, Expr::Value(it) if matches!(it.value, Value::Number(..)))
        }
        Expr::Cast { expr, data_type, .. } => is_constant(expr) && is_plain(data_type),
        // of numbers, dates and intervals, whose sums, differences and products are no others
        Expr::BinaryOp { left, op: B::Plus | B::Minus | B::Multiply, right } => {
            is_sum_part(left) && is_sum_part(right)
        }
        Expr::Function(function) => is_now(function),
        _ => false,
    }
}

/// A parameter takes its type from what it stands beside.
fn is_sum_part(expr: &Expr) -> bool {
    is_of_plain_type(expr) && !matches!(expr, Expr::Value(it) if matches!(it.value, Value::Placeholder(_)))
}

fn is_plain(ty: &DataType) -> bool {
    use DataType as T;
    matches!(
        ty,
        T::SmallInt(_)
            | T::Int(_)
            | T::Integer(_)
            | T::BigInt(_)
            | T::Int2(_)
            | T::Int4(_)
            | T::Int8(_)
            | T::Numeric(_)
            | T::Decimal(_)
            | T::Dec(_)
            | T::Bool
            | T::Boolean
            | T::Uuid
            | T::Date
            | T::Time(..)
            | T::Timestamp(..)
            | T::Interval { .. }
            | T::Text
            | T::Varchar(_)
    )
}

fn is_now(function: &Function) -> bool {
    let is_named = |name: &str| name == "now" || NOW.contains(&name);
    let is_bare = match &function.args {
        FunctionArguments::None => true,
        FunctionArguments::List(list) => list.args.is_empty(),
        FunctionArguments::Subquery(_) => false,
    };
    let name = function.name.0.last().and_then(|it| it.as_ident());
    is_bare && function.over.is_none() && name.is_some_and(|it| is_named(&it.value))
}
