//! `orderBy`: fields in the order in which they are given, those of rows that the row refers to by their path.

use rowgate_sql::request::OrderBy;

use crate::api::graphql::document::value::Value;

pub(super) fn terms(fields: Vec<(String, Value)>) -> Vec<OrderBy> {
    let mut terms = Vec::new();
    add("", fields, &mut terms);
    terms
}

/// Recurses no deeper than brackets may nest.
fn add(path: &str, fields: Vec<(String, Value)>, terms: &mut Vec<OrderBy>) {
    for (name, value) in fields {
        let name = format!("{path}{name}");
        match value {
            Value::Enum(direction) => terms.push(OrderBy { name, descending: direction == "DESC" }),
            Value::Object(fields) => add(&format!("{name}/"), fields, terms),
            _ => {}
        }
    }
}
