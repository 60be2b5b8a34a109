//! Values beside which no column is cast to a type out of whose range it may be, and which raise before any row is read or not at all.

use sqlparser::ast::{
    BinaryOperator as B, DataType, Expr, Function, FunctionArguments, Interval, TypedString,
    UnaryOperator as U, Value,
};

use crate::user_select::allowed::functions::NOW;
use crate::user_select::allowed::types::is_integer;
use crate::user_select::call;

pub(super) fn is_of_plain_type(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::Interval(_) => true,
        Expr::TypedString(TypedString { data_type, .. }) => is_plain(data_type),
        Expr::Nested(inner) => is_of_plain_type(inner),
        Expr::UnaryOp { op: U::Minus | U::Plus, expr } => {
            matches!(&**expr, Expr::Value(it) if matches!(it.value, Value::Number(..)))
        }
        // PostgreSQL reads it as a value of the type; whatever else is cast may be cast for each row
        Expr::Cast { expr, data_type, .. } => matches!(**expr, Expr::Value(_)) && is_plain(data_type),
        Expr::BinaryOp { left, op: B::Plus | B::Minus, right } => {
            matches!(&**left, Expr::Function(now) if is_now(now))
                && matches!(&**right, Expr::Interval(span) if is_small(span))
        }
        Expr::Function(function) => is_now(function),
        _ => false,
    }
}

/// The parameter that it is made of.
pub(super) fn parameter(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => Some(name),
            _ => None,
        },
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => parameter(inner),
        _ => None,
    }
}

/// `now()` and an interval of at most 999 years is a time that PostgreSQL has.
fn is_small(span: &Interval) -> bool {
    let Expr::Value(value) = &*span.value else { return false };
    let Value::SingleQuotedString(text) = &value.value else { return false };
    let unit = |unit: &str| {
        let unit = unit.strip_suffix('s').unwrap_or(unit);
        ["second", "minute", "hour", "day", "week", "month", "year"].contains(&unit)
    };
    let number = |number: &str| number.len() <= 3 && number.bytes().all(|it| it.is_ascii_digit());
    let is_bare = span.leading_field.is_none() && span.last_field.is_none();
    is_bare && text.split_once(' ').is_some_and(|(n, of)| number(n) && unit(of))
}

fn is_plain(ty: &DataType) -> bool {
    use DataType as T;
    let is_other = matches!(
        ty,
        T::Numeric(_)
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
    );
    is_integer(ty) || is_other
}

fn is_now(function: &Function) -> bool {
    let is_named = |name: &str| name == "now" || NOW.contains(&name);
    let is_bare = match &function.args {
        FunctionArguments::None => true,
        FunctionArguments::List(list) => list.args.is_empty(),
        FunctionArguments::Subquery(_) => false,
    };
    is_bare && function.over.is_none() && call::name(function).is_some_and(is_named)
}
