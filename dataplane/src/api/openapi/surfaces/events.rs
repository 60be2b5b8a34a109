//! The surface of events: one operation, where the key may read the events of a table.

use rowgate_sql::catalog::{Catalog, Scope};
use serde_json::{Value, json};

use crate::api::events::request::readable;
use crate::api::openapi::errors;
use crate::api::openapi::operation::{Operation, json_response};
use crate::api::openapi::sections::Sections;

const PAGE: &str = "rowgate.events";

pub(in crate::api::openapi) fn add(catalog: &Catalog, scope: &Scope, sections: &mut Sections) {
    let entities = catalog.entities.values().filter(|entity| readable(catalog, scope, entity).is_some());
    let names: Vec<&str> = entities.map(|entity| entity.name.as_str()).collect();
    if names.is_empty() {
        return;
    }
    sections.schemas.add(PAGE, &page(&names));
    let operation = Operation::new("events", "rowgate", "Changes of rows, in the order in which they became visible")
        .takes(vec![
            list("tables", &json!({"type": "string", "enum": names}), "Entities. Left out: all whose events the key may read"),
            list("ops", &json!({"type": "string", "enum": ["insert", "update", "delete", "truncate"]}), "Left out: all"),
            parameter("after", &json!({"type": "string", "pattern": "^(start|[0-9]+\\.[0-9]+\\.[0-9]+)$", "examples": ["start"]}),
                "The cursor of the page before, an EventId, or start. Left out: what happens from now on"),
            parameter("limit", &json!({"type": "integer", "minimum": 1, "maximum": 1000, "default": 500}), "Events at most"),
            parameter("wait", &json!({"type": "integer", "minimum": 0, "maximum": 30, "default": 0}),
                "Seconds to wait for an event where there is none"),
        ])
        .responds("200", json_response("A page of events", &json!({"$ref": format!("#/components/schemas/{PAGE}")})))
        .refuses(errors::OF_ANY.into_iter().chain(errors::OF_ROWS));
    sections.paths.add("/api/ddl/events", &json!({"get": operation.value()}));
}

fn parameter(name: &str, schema: &Value, description: &str) -> Value {
    json!({"name": name, "in": "query", "schema": schema, "description": description})
}

/// Several values, separated by commas.
fn list(name: &str, item: &Value, description: &str) -> Value {
    let schema = json!({"type": "array", "items": item, "minItems": 1, "uniqueItems": true});
    json!({"name": name, "in": "query", "style": "form", "explode": false, "schema": schema, "description": description})
}

fn page(names: &[&str]) -> Value {
    let event = json!({
        "type": "object",
        "required": ["EventId", "type", "op", "schema", "table", "entity", "occurredAt"],
        "properties": {
            "EventId": {"type": "string", "description": "The same wherever and how often the event is given"},
            "type": {"type": "string", "description": "entity.op"},
            "op": {"enum": ["insert", "update", "delete", "truncate"]},
            "schema": {"type": "string"},
            "table": {"type": "string"},
            "entity": {"enum": names},
            "occurredAt": {"type": "string", "format": "date-time"},
            "cause": {"type": "string", "description": "The same in the delete and the insert that a change of the key is"},
            "key": {"type": "object", "description": "Not of a truncate"},
            "data": {"type": "object", "description": "The row after the change, of a delete before it; the fields that the key may read"},
        },
    });
    json!({
        "type": "object",
        "required": ["events", "cursor", "hasMore"],
        "properties": {
            "events": {"type": "array", "items": event},
            "cursor": {"type": "string", "description": "Where the next page begins"},
            "hasMore": {"type": "boolean", "description": "More can be read at once"},
        },
    })
}
