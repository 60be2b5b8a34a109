//! The scalars of every schema: which type of PostgreSQL is which, and what each takes.

use rowgate_sql::catalog::{FieldType, Operators, TypeKind};

use crate::api::graphql::document::value::Value;

/// A scalar of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) name: &'static str,
    /// What a description says of its values.
    pub(crate) form: &'static str,
    /// The input of filters on its fields.
    pub(crate) filter: &'static str,
}

/// Those that GraphQL has itself, and ours.
pub(crate) const ALL: [Scalar; 14] = [
    Scalar { name: "Short", form: "a whole number of 16 bits", filter: "ShortFilterInput" },
    Scalar { name: "Int", form: "a whole number of 32 bits", filter: "IntFilterInput" },
    Scalar {
        name: "Long",
        form: "a whole number of 64 bits, or a string with one",
        filter: "LongFilterInput",
    },
    Scalar {
        name: "Single",
        form: "a number, \"NaN\", \"Infinity\" or \"-Infinity\"",
        filter: "SingleFilterInput",
    },
    Scalar {
        name: "Float",
        form: "a number, \"NaN\", \"Infinity\" or \"-Infinity\"",
        filter: "FloatFilterInput",
    },
    Scalar {
        name: "Decimal",
        form: "a number, or a string with one, of any precision",
        filter: "DecimalFilterInput",
    },
    Scalar { name: "Boolean", form: "true or false", filter: "BooleanFilterInput" },
    Scalar { name: "String", form: "a string", filter: "StringFilterInput" },
    Scalar {
        name: "UUID",
        form: "a string such as \"123e4567-e89b-12d3-a456-426614174000\"",
        filter: "UUIDFilterInput",
    },
    Scalar {
        name: "DateTime",
        form: "a string such as \"2026-01-31T09:30:00Z\"",
        filter: "DateTimeFilterInput",
    },
    Scalar { name: "Date", form: "a string such as \"2026-01-31\"", filter: "DateFilterInput" },
    Scalar { name: "LocalTime", form: "a string such as \"09:30:00\"", filter: "LocalTimeFilterInput" },
    Scalar { name: "Base64String", form: "a string of base 64", filter: "Base64StringFilterInput" },
    Scalar { name: "JSON", form: "any value", filter: "JSONFilterInput" },
];

/// Of enums, intervals, ranges, network addresses and the like, which are written as strings and have no functions of texts.
pub(crate) use rowgate_sql::graphql_names::TEXT_FORM_FILTER;

pub(crate) fn named(name: &str) -> Option<Scalar> {
    ALL.into_iter().find(|scalar| scalar.name == name)
}

/// What values of the scalar look like.
pub(crate) fn form(name: &str) -> &'static str {
    named(name).map_or("a value", |scalar| scalar.form)
}

/// The scalar of a column's type.
pub(crate) fn of(ty: &FieldType) -> &'static str {
    match (ty.kind, ty.base_oid) {
        (TypeKind::Base, 16) => "Boolean",
        (TypeKind::Base, 17) => "Base64String",
        (TypeKind::Base, 20 | 26) => "Long",
        (TypeKind::Base, 21) => "Short",
        (TypeKind::Base, 23) => "Int",
        (TypeKind::Base, 700) => "Single",
        (TypeKind::Base, 701) => "Float",
        (TypeKind::Base, 1700) => "Decimal",
        (TypeKind::Base, 1082) => "Date",
        (TypeKind::Base, 1083) => "LocalTime",
        (TypeKind::Base, 1114 | 1184) => "DateTime",
        (TypeKind::Base, 2950) => "UUID",
        (TypeKind::Base, 114 | 3802) | (TypeKind::Array | TypeKind::Composite, _) => "JSON",
        _ => "String",
    }
}

/// The input of filters on fields of the type.
pub(crate) fn filter(ty: &FieldType) -> &'static str {
    let scalar = of(ty);
    let is_text = ty.kind == TypeKind::Base && matches!(ty.base_oid, 18 | 19 | 25 | 1042 | 1043);
    match scalar {
        _ if ty.operators == Operators::Nowhere => "JSONFilterInput",
        "String" if !is_text => TEXT_FORM_FILTER,
        name => named(name).map_or(TEXT_FORM_FILTER, |scalar| scalar.filter),
    }
}

/// Whether the scalar takes a value, as far as its form goes.
pub(crate) fn takes(name: &str, value: &Value) -> bool {
    let is_whole = |text: &str, min: i64, max: i64| {
        text.parse::<i64>().is_ok_and(|number| min <= number && number <= max) && !text.starts_with('+')
    };
    let special = |text: &str| matches!(text, "NaN" | "Infinity" | "-Infinity");
    match (name, value) {
        ("JSON", _) => true,
        ("Short", Value::Number(text)) => is_whole(text, i16::MIN.into(), i16::MAX.into()),
        ("Int", Value::Number(text)) => is_whole(text, i32::MIN.into(), i32::MAX.into()),
        ("Long", Value::Number(text) | Value::Text(text)) => is_whole(text, i64::MIN, i64::MAX),
        ("Single" | "Float", Value::Text(text)) => special(text),
        ("Decimal", Value::Text(text)) => {
            special(text) || serde_json::from_str::<serde_json::Number>(text).is_ok()
        }
        ("Single" | "Float" | "Decimal", Value::Number(_)) => true,
        ("Boolean", Value::Bool(_)) => true,
        ("ID", Value::Text(_) | Value::Number(_)) => true,
        ("String" | "UUID" | "DateTime" | "Date" | "LocalTime" | "Base64String", Value::Text(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rowgate_sql::graphql_names::SCALARS;

    use super::*;

    #[test]
    fn no_entity_takes_the_name_of_a_scalar_or_of_its_filter() {
        assert_eq!(ALL.map(|scalar| scalar.name), SCALARS);
        for Scalar { name, filter, .. } in ALL {
            assert_eq!(filter, format!("{name}FilterInput"));
        }
    }
}
