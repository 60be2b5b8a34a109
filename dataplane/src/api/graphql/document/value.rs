//! Values of arguments: what a document or its variables say, with numbers as they were written.

use std::collections::HashMap;

use async_graphql::Name;
use async_graphql_value::{ConstValue, Value as Given};
use rowgate_sql::request::{self, Input};

/// How deep values may nest.
const MAX_DEPTH: usize = 64;

/// A value as it was given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// As written.
    Number(String),
    Text(String),
    Enum(String),
    List(Vec<Value>),
    /// In the order given; the last of equal names counts.
    Object(Vec<(String, Value)>),
}

/// Values by name, without `$`.
pub(crate) type Variables = HashMap<String, Value>;

impl Value {
    /// The value of a JSON text. `None`: it nests too deep, or is no JSON.
    pub(crate) fn of_json(raw: &str) -> Option<Value> {
        of_input(request::input(raw).ok()?, 0)
    }

    /// A value of a document with its variables filled in. `None`: it is a variable that has no value.
    pub(crate) fn of_document(value: &Given, variables: &Variables) -> Option<Value> {
        Some(match value {
            Given::Variable(name) => variables.get(name.as_str())?.clone(),
            Given::Null => Value::Null,
            Given::Number(number) => Value::Number(number.to_string()),
            Given::String(text) => Value::Text(text.clone()),
            Given::Boolean(value) => Value::Bool(*value),
            Given::Enum(name) => Value::Enum(name.to_string()),
            // no document has bytes
            Given::Binary(_) => Value::Null,
            Given::List(items) => {
                let item = |item| Value::of_document(item, variables).unwrap_or(Value::Null);
                Value::List(items.iter().map(item).collect())
            }
            Given::Object(fields) => {
                let field = |(name, value): (&Name, _)| {
                    Some((name.to_string(), Value::of_document(value, variables)?))
                };
                Value::Object(fields.iter().filter_map(field).collect())
            }
        })
    }

    /// A value without variables.
    pub(crate) fn of_constant(value: &ConstValue) -> Value {
        Value::of_document(&value.clone().into_value(), &Variables::new()).unwrap_or(Value::Null)
    }

    /// The same value as JSON text.
    pub(crate) fn json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(text) => out.push_str(text),
            Value::Text(text) | Value::Enum(text) => out.push_str(&json_text(text)),
            Value::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    item.write(out);
                }
                out.push(']');
            }
            Value::Object(fields) => {
                out.push('{');
                for (i, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    out.push_str(&json_text(name));
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// A string as JSON.
pub(crate) fn json_text(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always JSON")
}

fn of_input(input: Input<'_>, depth: usize) -> Option<Value> {
    if MAX_DEPTH < depth {
        return None;
    }
    Some(match input {
        Input::Null => Value::Null,
        Input::Bool(value) => Value::Bool(value),
        Input::Number(text) => Value::Number(text.to_owned()),
        Input::Text(text) => Value::Text(text),
        Input::List(raw) => {
            let items = request::items(raw).ok()?;
            Value::List(items.map(|item| of_input(item.ok()?, depth + 1)).collect::<Option<_>>()?)
        }
        Input::Object(raw) => {
            let mut fields: Vec<(String, Value)> = Vec::new();
            for (name, value) in request::fields(raw).ok()? {
                let value = of_input(value, depth + 1)?;
                match fields.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => *known = value,
                    None => fields.push((name, value)),
                }
            }
            Value::Object(fields)
        }
    })
}
