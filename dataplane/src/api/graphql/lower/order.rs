//! `orderBy`: fields in the order in which they are given.

use rowgate_sql::request::OrderBy;

use crate::api::graphql::document::value::Value;

pub(super) fn terms(fields: Vec<(String, Value)>) -> Vec<OrderBy> {
    let term = |(name, value)| match value {
        Value::Enum(direction) => Some(OrderBy { name, descending: direction == "DESC" }),
        _ => None,
    };
    fields.into_iter().filter_map(term).collect()
}
