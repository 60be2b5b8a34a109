//! How long a value may be, by what is written.

use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator as B, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, TypedString, Value,
};

use crate::user_select::allowed::types::is_integer;
use crate::user_select::call;

/// Those that may give an array.
const OF_ARRAYS: &[&str] = &[
    "any_value",
    "array",
    "array_agg",
    "array_append",
    "array_cat",
    "array_positions",
    "array_prepend",
    "array_remove",
    "array_replace",
    "coalesce",
    "first_value",
    "greatest",
    "lag",
    "last_value",
    "lead",
    "least",
    "max",
    "min",
    "mode",
    "nth_value",
    "nullif",
    "percentile_disc",
    "regexp_match",
    "regexp_matches",
    "regexp_split_to_array",
    "string_to_array",
    "trim_array",
];

pub(super) fn placeholders(expr: &Expr, found: &mut Vec<String>) {
    match expr {
        Expr::Value(value) => {
            if let Value::Placeholder(name) = &value.value {
                found.push(name.clone());
            }
        }
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } | Expr::Cast { expr: inner, .. } => {
            placeholders(inner, found);
        }
        Expr::BinaryOp { left, right, .. } => {
            placeholders(left, found);
            placeholders(right, found);
        }
        Expr::Collate { expr: inner, .. } => placeholders(inner, found),
        Expr::Array(array) => array.elem.iter().for_each(|it| placeholders(it, found)),
        Expr::Function(Function { args: FunctionArguments::List(list), .. }) => {
            for arg in &list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
                    placeholders(expr, found);
                }
            }
        }
        _ => {}
    }
}

/// A value that is as long as it is written, or as the value that is given for its parameter.
pub(super) fn is_given(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => {
            !matches!(&value.value, Value::Number(digits, _) if digits.contains(['e', 'E']))
        }
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => is_given(inner),
        Expr::BinaryOp { left, op: B::StringConcat, right } => is_given(left) && is_given(right),
        Expr::Array(array) => array.elem.iter().all(is_given),
        Expr::Cast { expr, data_type, .. } => is_text(expr) && !makes_longer(data_type),
        Expr::Function(function) => {
            const NO_LONGER: &[&str] = &[
                "phraseto_tsquery",
                "plainto_tsquery",
                "string_to_array",
                "to_tsquery",
                "websearch_to_tsquery",
            ];
            call::name(function).is_some_and(|name| NO_LONGER.contains(&name))
                && are_arguments(function, is_given)
        }
        _ => false,
    }
}

/// Columns that may stand in what is about as long as one of them.
const MAX_COLUMNS: usize = 8;

/// A value of a column, or little more than a few, where columns are those of tables.
pub(super) fn is_stored(expr: &Expr) -> bool {
    let mut n_columns = 0;
    is_of_columns(expr, &mut n_columns) && n_columns <= MAX_COLUMNS
}

fn is_of_columns(expr: &Expr, n_columns: &mut usize) -> bool {
    // a number of few digits may have 131,072 of them once it is a text
    *n_columns += match expr {
        Expr::Value(_) => usize::from(!is_given(expr)),
        Expr::TypedString(TypedString { data_type, .. }) | Expr::Cast { data_type, .. } => {
            usize::from(makes_longer(data_type))
        }
        _ => 0,
    };
    let mut is_stored = |expr: &Expr| is_of_columns(expr, n_columns);
    match expr {
        Expr::Value(_) => true,
        Expr::TypedString(it) => !fills_up(&it.data_type),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
            *n_columns += 1;
            true
        }
        Expr::Cast { data_type, .. } if fills_up(data_type) => false,
        Expr::Nested(inner)
        | Expr::Cast { expr: inner, .. }
        | Expr::Collate { expr: inner, .. }
        | Expr::Extract { expr: inner, .. }
        | Expr::AtTimeZone { timestamp: inner, .. }
        | Expr::CompoundFieldAccess { root: inner, .. }
        | Expr::UnaryOp { expr: inner, .. } => is_stored(inner),
        Expr::BinaryOp { left, op, right } => {
            const SMALL: &[B] = &[
                B::StringConcat,
                B::Plus,
                B::Minus,
                B::Multiply,
                B::Divide,
                B::Modulo,
                B::Arrow,
                B::LongArrow,
                B::HashArrow,
                B::HashLongArrow,
            ];
            SMALL.contains(op) && is_stored(left) && is_stored(right)
        }
        Expr::Array(array) => array.elem.iter().all(is_stored),
        Expr::Tuple(parts) => parts.iter().all(is_stored),
        Expr::Function(function) => {
            const SMALL: &[&str] = &[
                "coalesce",
                "date_part",
                "date_trunc",
                "left",
                "lower",
                "now",
                "right",
                "substring",
                "to_jsonb",
                "upper",
            ];
            call::name(function).is_some_and(|name| SMALL.contains(&name))
                && are_arguments(function, is_stored)
        }
        _ => false,
    }
}

/// No row is needed to work it out.
pub(super) fn is_of_given(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_of_given(inner),
        Expr::Array(array) => array.elem.iter().all(is_of_given),
        Expr::Function(function) => are_arguments(function, is_of_given),
        _ => false,
    }
}

/// Of each argument, where all are plain values.
fn are_arguments(function: &Function, mut are: impl FnMut(&Expr) -> bool) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    list.args.iter().all(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => are(expr),
        _ => false,
    })
}

/// With blanks or zeros, up to its length.
fn fills_up(ty: &DataType) -> bool {
    match ty {
        DataType::Char(_) | DataType::Character(_) | DataType::Bit(_) => true,
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => fills_up(element),
        _ => false,
    }
}

/// A number has up to 131,072 digits more than are written.
fn is_text(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => !matches!(value.value, Value::Number(..)),
        Expr::Nested(inner) => is_text(inner),
        _ => false,
    }
}

fn makes_longer(ty: &DataType) -> bool {
    use DataType as T;
    match ty {
        T::Array(ArrayElemTypeDef::SquareBracket(element, _)) => makes_longer(element),
        T::Text | T::Varchar(_) | T::Uuid | T::JSON | T::JSONB | T::Bytea => false,
        _ => !is_integer(ty),
    }
}

/// It is known to be no array, whatever the types of columns.
pub(super) fn is_scalar(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_scalar(inner),
        Expr::Value(_)
        | Expr::TypedString(_)
        | Expr::Interval(_)
        | Expr::UnaryOp { .. }
        | Expr::Extract { .. }
        | Expr::Position { .. }
        | Expr::AtTimeZone { .. } => true,
        Expr::BinaryOp { op, .. } => matches!(op, B::Plus | B::Minus | B::Multiply | B::Divide | B::Modulo),
        Expr::Cast { data_type, .. } => !matches!(data_type, DataType::Array(_)),
        Expr::Function(function) => call::name(function).is_some_and(|name| !OF_ARRAYS.contains(&name)),
        _ => false,
    }
}
