//! The surface of aggregates: one operation for each entity that the key reads.

use rowgate_sql::catalog::{Catalog, Scope};
use rowgate_sql::request::AggregateFunction;
use serde_json::{Value, json};

use crate::api::openapi::access::{Access, Resolver, Rows};
use crate::api::openapi::errors;
use crate::api::openapi::operation::{Operation, json_body, json_response};
use crate::api::openapi::sections::Sections;

/// What every operation answers with.
const GROUPS: &str = "rowgate.groups";

pub(in crate::api::openapi) fn add(catalog: &Catalog, scope: &Scope, sections: &mut Sections) {
    let resolver = Resolver::new(catalog, scope);
    let accesses = catalog.entities.values().filter_map(|entity| resolver.access(entity));
    let rows = accesses.filter_map(|access| match access {
        Access::Rows(rows) if rows.aggregates => Some(rows),
        _ => None,
    });
    let mut is_first = true;
    for rows in rows {
        if std::mem::take(&mut is_first) {
            sections.schemas.add(GROUPS, &groups());
        }
        add_entity(&rows, catalog.limits.max_page_size, sections);
    }
}

fn add_entity(rows: &Rows<'_>, max: u32, sections: &mut Sections) {
    let name = rows.entity.name.as_str();
    let reference = |schema: &str| json!({"$ref": format!("#/components/schemas/{schema}")});
    let schema = format!("{name}.aggregates");
    sections.schemas.add(&schema, &request(rows, max));
    let operation = Operation::new(
        &format!("aggregate_{name}"),
        name,
        &format!("What groups of rows of {name} come to: sums, averages, limits and numbers"),
    )
    .body(json_body(&reference(&schema), true))
    .responds("200", json_response("A page of groups", &reference(GROUPS)))
    .refuses(errors::OF_ANY.into_iter().chain(errors::OF_ROWS));
    sections.paths.add(&format!("/api/ddl/aggregates/{name}"), &json!({"post": operation.value()}));
}

/// A body, as far as a schema says it: which functions a field has is said by its type.
fn request(rows: &Rows<'_>, max: u32) -> Value {
    let names =
        |fields: &[usize]| -> Vec<&str> { fields.iter().map(|at| rows.field(*at).name.as_str()).collect() };
    let readable = names(&rows.readable);
    let functions = AggregateFunction::ALL.map(AggregateFunction::word);
    let text = |what: &str| json!({"type": ["string", "null"], "description": what});
    let aggregation = json!({
        "type": "object",
        "required": ["function", "as"],
        "additionalProperties": false,
        "properties": {
            "function": {"type": "string", "enum": functions},
            "field": {"enum": readable.iter().map(|name| json!(name)).chain([Value::Null]).collect::<Vec<_>>(),
                "description": "Left out: count counts rows"},
            "as": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "maxLength": 63},
            "distinct": {"type": ["boolean", "null"], "description": "Equal values count once"},
        },
    });
    let group_by: Vec<&str> = names(&rows.groupable).into_iter().take(1).collect();
    let by = match rows.groupable.is_empty() {
        true => json!({"type": ["array", "null"], "maxItems": 0}),
        false => json!({"type": ["array", "null"], "maxItems": 32, "uniqueItems": true,
            "items": {"type": "string", "enum": names(&rows.groupable)}}),
    };
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "groupBy": by,
            "aggregations": {"type": ["array", "null"], "maxItems": 64, "items": aggregation},
            "filter": text("Which rows are grouped: a condition as in $filter"),
            "having": text("Which groups are kept: a condition over the names of groupBy and aggregations"),
            "orderby": text("Names of groupBy and aggregations, each with asc or desc"),
            "first": {"type": ["integer", "null"], "minimum": -1, "maximum": max, "not": {"const": 0},
                "description": format!("How many groups: 100 if left out; -1: {max}")},
            "after": text("The cursor of the page before"),
        },
        "examples": [{
            "groupBy": group_by,
            "aggregations": [{"function": "count", "as": "number"}],
            "having": "number ge 1",
            "orderby": "number desc",
            "first": 10,
        }],
    })
}

fn groups() -> Value {
    json!({
        "type": "object",
        "required": ["value", "after"],
        "properties": {
            "value": {"type": "array", "items": {"type": "object"},
                "description": "The fields of groupBy and the aggregations of each group"},
            "after": {"type": ["string", "null"], "description": "The cursor of the next page, where there is one"},
        },
    })
}
