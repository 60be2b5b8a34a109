//! What adds up within one row, between whose values PostgreSQL does not look up.

use sqlparser::ast::{BinaryOperator as B, DataType as T, Expr, InTarget, Value};

use super::given::is_given;
use super::size_for;
use crate::user_select::allowed::types::is_integer;

/// How many values of any length it goes through, functions apart.
pub(super) fn n_long(expr: &Expr) -> usize {
    let beside = |left: &Expr, right: &Expr| {
        if is_given(left) || is_given(right) { 0 } else { n_values(left).max(n_values(right)) }
    };
    match expr {
        Expr::Between { expr, .. } => 2 * n_values(expr),
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            n_values(left).max(n_values(right))
        }
        Expr::BinaryOp { left, op: B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq, right } => {
            beside(left, right)
        }
        Expr::In { expr, target: InTarget::List(list), .. } => {
            list.iter().map(|value| beside(expr, value)).sum()
        }
        Expr::In { expr, .. } | Expr::AnyOp { left: expr, .. } | Expr::AllOp { left: expr, .. } => {
            n_values(expr) - 1
        }
        _ => usize::from(is_long(expr)),
    }
}

/// The parts of a tuple, which are compared one by one.
pub(in crate::user_select) fn n_values(expr: &Expr) -> usize {
    match expr {
        Expr::Nested(inner) => n_values(inner),
        Expr::Tuple(parts) => parts.iter().map(n_values).sum::<usize>().max(1),
        _ => 1,
    }
}

/// Of two decimals that may be long. The digits of a float and of an integer are few.
pub(super) fn is_product(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { left, op: B::Multiply | B::Divide | B::Modulo | B::PGExp, right } => {
            !has_few_digits(left) && !has_few_digits(right)
        }
        _ => false,
    }
}

fn has_few_digits(expr: &Expr) -> bool {
    const MAX_DIGITS: usize = 100;
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => has_few_digits(inner),
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.len() <= MAX_DIGITS && !digits.contains(['e', 'E']),
            _ => false,
        },
        Expr::Extract { .. } | Expr::Interval(_) => true,
        Expr::Cast { data_type, .. } => is_small(data_type),
        _ => false,
    }
}

/// A number of few digits, or an interval.
fn is_small(ty: &T) -> bool {
    let is_float = matches!(ty, T::Float(_) | T::Float4 | T::Float8 | T::Real | T::DoublePrecision);
    is_integer(ty) || is_float || matches!(ty, T::Interval { .. })
}

/// What takes as long as a value is long, functions and comparisons apart.
fn is_long(expr: &Expr) -> bool {
    match expr {
        Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::SimilarTo { .. }
        | Expr::Overlay { .. }
        | Expr::Trim { .. }
        | Expr::Position { .. } => true,
        Expr::Cast { data_type, .. } => {
            let is_of_few_parts = matches!(
                data_type,
                T::Numeric(_)
                    | T::Decimal(_)
                    | T::Bool
                    | T::Boolean
                    | T::Date
                    | T::Time(..)
                    | T::Timestamp(..)
                    | T::Uuid
            );
            !is_small(data_type) && !is_of_few_parts
        }
        Expr::BinaryOp { op, .. } => {
            use B::{
                Arrow, AtAt, AtQuestion, HashArrow, HashLongArrow, HashMinus, LongArrow, PGRegexIMatch,
                PGRegexMatch, PGRegexNotIMatch, PGRegexNotMatch, StringConcat,
            };
            let is_long = matches!(
                op,
                StringConcat
                    | Arrow
                    | LongArrow
                    | HashArrow
                    | HashLongArrow
                    | HashMinus
                    | AtAt
                    | AtQuestion
                    | PGRegexMatch
                    | PGRegexIMatch
                    | PGRegexNotMatch
                    | PGRegexNotIMatch
            );
            is_long || size_for(op).is_some()
        }
        _ => false,
    }
}
