//! PostgreSQL's types as JSON Schema: what a value looks like in an answer, and what a body may hold.
//!
//! `docs/types.md` says the same in words. Three things are simpler here than there, so that clients get types that are of
//! use: an array is a list of its elements, dates and moments have the formats of their usual years, and composites nest as
//! deep as they are.

use std::collections::HashMap;
use std::sync::Arc;

use rowgate_sql::catalog::FieldType;
use rowgate_sql::shape::{Body, Encoding, Nested};
use serde_json::{Map, Value, json};

use crate::api::openapi::sections::Members;

/// The composites that a document names, by the oid of the type.
#[derive(Default)]
pub(super) struct Composites(HashMap<u32, String>);

/// A field or a parameter, as far as its schema goes.
#[derive(Clone, Copy)]
pub(super) struct Column<'a> {
    pub(super) ty: &'a FieldType,
    /// Of an enum, for who may read them; else empty.
    pub(super) labels: &'a [String],
    pub(super) takes_null: bool,
}

impl Column<'_> {
    /// Its schema. A composite is added to `schemas` when it is met first.
    pub(super) fn schema(self, composites: &mut Composites, schemas: &mut Members) -> Value {
        let encoding = encoding(self.ty);
        let mut schema = of(&encoding, self.takes_null, composites, schemas);
        if let (Encoding::Text, Some(length)) = (&encoding, max_length(&self.ty.name)) {
            schema.insert("maxLength".into(), json!(length));
        }
        if !self.labels.is_empty() && matches!(encoding, Encoding::Text) {
            let null = self.takes_null.then_some(Value::Null);
            let labels: Vec<Value> = self.labels.iter().map(|label| json!(label)).chain(null).collect();
            schema.insert("enum".into(), json!(labels));
        }
        schema.insert("description".into(), json!(self.ty.name));
        Value::Object(schema)
    }

    /// As a part of an address, where everything is text: no NULL, and nothing empty.
    pub(super) fn in_path(self) -> Value {
        let encoding = encoding(self.ty);
        let mut schema = match encoding {
            Encoding::Float4 | Encoding::Float8 | Encoding::Numeric => object(json!({"type": "number"})),
            Encoding::Json | Encoding::Jsonb | Encoding::Nested(_) => object(json!({"type": "string"})),
            _ => scalar(&encoding, false),
        };
        if schema.get("type") == Some(&json!("string")) {
            schema.insert("minLength".into(), json!(1));
        }
        if !self.labels.is_empty() {
            schema.insert("enum".into(), json!(self.labels));
        }
        schema.insert("description".into(), json!(self.ty.name));
        Value::Object(schema)
    }
}

pub(super) fn encoding(ty: &FieldType) -> Encoding {
    match &ty.nested {
        Some(nested) => Encoding::Nested(Arc::clone(nested)),
        None => Encoding::scalar(ty.kind, ty.base_oid),
    }
}

fn of(
    encoding: &Encoding,
    takes_null: bool,
    composites: &mut Composites,
    schemas: &mut Members,
) -> Map<String, Value> {
    match encoding {
        Encoding::Nested(nested) => of_nested(nested, takes_null, composites, schemas),
        scalar_encoding => scalar(scalar_encoding, takes_null),
    }
}

fn of_nested(
    nested: &Nested,
    takes_null: bool,
    composites: &mut Composites,
    schemas: &mut Members,
) -> Map<String, Value> {
    match &nested.body {
        Body::Array { element, .. } => {
            let items = of(&element.encoding, true, composites, schemas);
            object(json!({"type": types(&["array"], takes_null), "items": items}))
        }
        Body::Composite(attributes) => {
            let n = composites.0.len() + 1;
            let (name, is_new) = match composites.0.get(&nested.oid) {
                Some(name) => (name.clone(), false),
                None => (format!("rowgate.composite_{n}"), true),
            };
            if is_new {
                composites.0.insert(nested.oid, name.clone());
                let mut properties = Map::new();
                for attribute in attributes {
                    let schema = of(&attribute.part.encoding, true, composites, schemas);
                    properties.insert(name_of(&attribute.label), Value::Object(schema));
                }
                schemas.add(&name, &json!({"type": "object", "properties": properties}));
            }
            let reference = json!({"$ref": format!("#/components/schemas/{name}")});
            object(match takes_null {
                true => json!({"anyOf": [reference, {"type": "null"}]}),
                false => reference,
            })
        }
    }
}

/// The name in `"name":`, as a label of a shape has it.
pub(super) fn name_of(label: &str) -> String {
    let quoted = label.strip_suffix(':').unwrap_or(label);
    serde_json::from_str(quoted).expect("a label is a JSON string and a colon")
}

/// What NaN and the infinities are beside numbers.
const NO_NUMBER: &str = "^(NaN|-?Infinity)$";

fn scalar(encoding: &Encoding, takes_null: bool) -> Map<String, Value> {
    let whole = |format: &str, min: i64, max: i64| json!({"type": types(&["integer"], takes_null), "format": format, "minimum": min, "maximum": max});
    let number = |format: &str| json!({"type": types(&["number", "string"], takes_null), "format": format, "pattern": NO_NUMBER});
    let text = types(&["string"], takes_null);
    let formatted = |format: &str| json!({"type": text, "format": format});
    object(match encoding {
        Encoding::Bool => json!({"type": types(&["boolean"], takes_null)}),
        Encoding::Int2 => whole("int16", i64::from(i16::MIN), i64::from(i16::MAX)),
        Encoding::Int4 => whole("int32", i64::from(i32::MIN), i64::from(i32::MAX)),
        Encoding::Int8 => whole("int64", i64::MIN, i64::MAX),
        Encoding::Oid => whole("uint32", 0, i64::from(u32::MAX)),
        Encoding::Float4 => number("float"),
        Encoding::Float8 => number("double"),
        Encoding::Numeric => number("decimal"),
        Encoding::Uuid => formatted("uuid"),
        Encoding::Bytea => json!({"type": text, "contentEncoding": "base64"}),
        Encoding::Date => formatted("date"),
        Encoding::Time => formatted("time-local"),
        Encoding::Timestamp => formatted("date-time-local"),
        Encoding::TimestampTz => formatted("date-time"),
        // any JSON, null included
        Encoding::Json | Encoding::Jsonb => json!({}),
        Encoding::Text | Encoding::TimeTz | Encoding::Interval | Encoding::Quoted | Encoding::Nested(_) => {
            json!({"type": text})
        }
    })
}

/// One type by itself, several as a list.
fn types(names: &[&str], takes_null: bool) -> Value {
    let null = takes_null.then_some("null");
    let all: Vec<&str> = names.iter().copied().chain(null).collect();
    match all[..] {
        [only] => json!(only),
        _ => json!(all),
    }
}

/// Of `character varying(80)`, `character(3)`.
pub(super) fn max_length(name: &str) -> Option<usize> {
    let length = name.strip_prefix("character varying(").or_else(|| name.strip_prefix("character("))?;
    length.strip_suffix(')')?.parse().ok()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => unreachable!("{other} is written as an object above"),
    }
}
