//! A value of each type that PostgreSQL takes, for examples and for the questions that are put to the resolver.

use rowgate_sql::catalog::FieldType;
use rowgate_sql::shape::{Body, Encoding, Part};
use serde_json::{Map, Value, json};

use crate::api::openapi::schemas::{encoding, max_length, name_of};

/// A value of the type; `None` where only a text of PostgreSQL's own is one and none is known. `labels`: of an enum.
pub(super) fn value(ty: &FieldType, labels: &[String]) -> Option<Value> {
    if let Some(label) = labels.first() {
        return Some(json!(label));
    }
    match of(&encoding(ty)) {
        Some(Value::String(text)) => {
            let length = max_length(&ty.name).unwrap_or(text.len());
            Some(json!(text.chars().take(length).collect::<String>()))
        }
        Some(value) => Some(value),
        None => printed(&ty.name).map(Value::from),
    }
}

/// As [`value`], and some text where none is known.
pub(super) fn any_value(ty: &FieldType, labels: &[String]) -> Value {
    value(ty, labels).unwrap_or_else(|| json!("text"))
}

/// The value in an address.
pub(super) fn in_path(ty: &FieldType, labels: &[String]) -> String {
    match any_value(ty, labels) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// The value as a constant of `$filter`; `None` for types whose constants are written in other ways.
pub(super) fn constant(ty: &FieldType, labels: &[String]) -> Option<String> {
    match (encoding(ty), value(ty, labels)?) {
        (
            Encoding::Bytea | Encoding::Interval | Encoding::Nested(_) | Encoding::Json | Encoding::Jsonb,
            _,
        ) => None,
        (Encoding::Text | Encoding::Quoted, Value::String(text)) => {
            Some(format!("'{}'", text.replace('\'', "''")))
        }
        (_, Value::String(text)) => Some(text),
        (_, other) => Some(other.to_string()),
    }
}

fn of(encoding: &Encoding) -> Option<Value> {
    Some(match encoding {
        Encoding::Bool => json!(true),
        Encoding::Int2 | Encoding::Int4 | Encoding::Int8 | Encoding::Oid | Encoding::Numeric => json!(1),
        Encoding::Float4 | Encoding::Float8 => json!(1.5),
        Encoding::Text => json!("text"),
        Encoding::Uuid => json!("3f2504e0-4f89-11d3-9a0c-0305e82c3301"),
        Encoding::Bytea => json!("AQID"),
        Encoding::Date => json!("2026-01-31"),
        Encoding::Time => json!("10:00:00"),
        Encoding::TimeTz => json!("10:00:00+00"),
        Encoding::Timestamp => json!("2026-01-31T10:00:00"),
        Encoding::TimestampTz => json!("2026-01-31T10:00:00Z"),
        Encoding::Interval => json!("P1DT2H"),
        Encoding::Json | Encoding::Jsonb => json!({"key": "value"}),
        Encoding::Quoted => return None,
        Encoding::Nested(nested) => match &nested.body {
            Body::Array { element, .. } => json!(of_part(element).into_iter().collect::<Vec<_>>()),
            Body::Composite(attributes) => {
                let values = attributes
                    .iter()
                    .filter_map(|attribute| Some((name_of(&attribute.label), of_part(&attribute.part)?)));
                Value::Object(values.collect::<Map<_, _>>())
            }
        },
    })
}

/// The first oid of types that PostgreSQL does not bring.
const FIRST_OF_OTHERS: u32 = 16_384;

/// `None` for what may be an enum, whose labels are not known here.
fn of_part(part: &Part) -> Option<Value> {
    let is_own = FIRST_OF_OTHERS <= part.oid && !matches!(part.encoding, Encoding::Nested(_));
    if is_own { None } else { of(&part.encoding) }
}

/// Of a type whose values are what PostgreSQL prints, by its name without a modifier.
fn printed(name: &str) -> Option<&'static str> {
    Some(match name.split('(').next().unwrap_or(name) {
        "inet" => "192.0.2.1",
        "cidr" => "192.0.2.0/24",
        "macaddr" => "08:00:2b:01:02:03",
        "macaddr8" => "08:00:2b:01:02:03:04:05",
        "money" => "$1.00",
        "bit varying" => "1",
        "int4range" | "int8range" | "numrange" => "[1,5)",
        "daterange" => "[2026-01-01,2026-02-01)",
        "tsrange" | "tstzrange" => "[2026-01-01,2026-02-01)",
        "point" => "(1,2)",
        "xml" => "<a/>",
        "tsvector" | "tsquery" => "'a'",
        "pg_lsn" => "16/B374D848",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rowgate_sql::catalog::{Operators, TypeKind};

    use super::*;

    fn base(oid: u32, name: &str) -> FieldType {
        let (kind, operators) = (TypeKind::Base, Operators::BuiltIn);
        FieldType { oid, name: name.to_owned(), kind, base_oid: oid, operators, nested: None }
    }

    #[test]
    fn an_example_fits_its_column() {
        assert_eq!(value(&base(1043, "character varying(2)"), &[]), Some(json!("te")));
        assert_eq!(value(&base(25, "text"), &[]), Some(json!("text")));
        assert_eq!(value(&base(869, "inet"), &[]), Some(json!("192.0.2.1")));
        assert_eq!(value(&base(90_000, "app.unheard_of"), &[]), None);
        assert_eq!(constant(&base(25, "text"), &["it's".to_owned()]).as_deref(), Some("'it''s'"));
        assert_eq!(constant(&base(1082, "date"), &[]).as_deref(), Some("2026-01-31"));
    }
}
