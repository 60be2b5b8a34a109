//! The surface of events: a page and a stream, where the key may read the events of a table.

use rowgate_sql::catalog::{Catalog, Scope};
use serde_json::{Value, json};

use crate::api::events::request::readable;
use crate::api::openapi::errors;
use crate::api::openapi::operation::{Operation, json_response};
use crate::api::openapi::sections::Sections;

const PAGE: &str = "rowgate.events";
const EVENT: &str = "rowgate.event";
const CURSOR: &str = "^(start|[0-9]+\\.[0-9]+\\.[0-9]+)$";

pub(in crate::api::openapi) fn add(catalog: &Catalog, scope: &Scope, sections: &mut Sections) {
    let entities = catalog.entities.values().filter(|entity| readable(catalog, scope, entity).is_some());
    let names: Vec<&str> = entities.map(|entity| entity.name.as_str()).collect();
    if names.is_empty() {
        return;
    }
    sections.schemas.add(EVENT, &event(&names));
    sections.schemas.add(PAGE, &page());
    let wanted = vec![
        list(
            "tables",
            &json!({"type": "string", "enum": names}),
            "Entities. Left out: all whose events the key may read",
        ),
        list(
            "ops",
            &json!({"type": "string", "enum": ["insert", "update", "delete", "truncate"]}),
            "Left out: all",
        ),
        parameter(
            "after",
            &json!({"type": "string", "pattern": CURSOR, "examples": ["start"]}),
            "The cursor of the page before, an EventId, or start. Left out: what happens from now on",
        ),
    ];
    let operation =
        Operation::new("events", "rowgate", "Changes of rows, in the order in which they became visible")
            .takes(
                [
                    wanted.clone(),
                    vec![
                        parameter(
                            "limit",
                            &json!({"type": "integer", "minimum": 1, "maximum": 1000, "default": 500}),
                            "Events at most",
                        ),
                        parameter(
                            "wait",
                            &json!({"type": "integer", "minimum": 0, "maximum": 30, "default": 0}),
                            "Seconds to wait for an event where there is none",
                        ),
                    ],
                ]
                .concat(),
            )
            .responds(
                "200",
                json_response("A page of events", &json!({"$ref": format!("#/components/schemas/{PAGE}")})),
            )
            .refuses(errors::OF_ANY.into_iter().chain(errors::OF_ROWS));
    sections.paths.add("/api/ddl/events", &json!({"get": operation.value()}));
    let stream = json!({
        "description": "Server-sent events until the caller goes away or the key loses its rights. Each `change` has an event as its \
            data and the cursor behind it as its id. `reset` says that events before its id are no longer kept, and `position` \
            moves the id on without an event",
        "content": {"text/event-stream": {"schema": {"type": "string", "contentMediaType": "text/event-stream"}}},
    });
    let operation = Operation::new(
        "streamEvents",
        "rowgate",
        "Changes of rows as they become visible, as server-sent events",
    )
    .takes(
        [
            wanted,
            vec![json!({
                "name": "Last-Event-ID", "in": "header", "schema": {"type": "string", "pattern": CURSOR},
                "description": "The id that the caller has; it goes before after",
            })],
        ]
        .concat(),
    )
    .responds("200", stream)
    .refuses(errors::OF_ANY.into_iter().chain(errors::OF_ROWS));
    sections.paths.add("/api/ddl/events/stream", &json!({"get": operation.value()}));
}

fn parameter(name: &str, schema: &Value, description: &str) -> Value {
    json!({"name": name, "in": "query", "schema": schema, "description": description})
}

/// Several values, separated by commas.
fn list(name: &str, item: &Value, description: &str) -> Value {
    let schema = json!({"type": "array", "items": item, "minItems": 1, "uniqueItems": true});
    json!({"name": name, "in": "query", "style": "form", "explode": false, "schema": schema, "description": description})
}

fn event(names: &[&str]) -> Value {
    json!({
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
    })
}

fn page() -> Value {
    json!({
        "type": "object",
        "required": ["events", "cursor", "hasMore"],
        "properties": {
            "events": {"type": "array", "items": {"$ref": format!("#/components/schemas/{EVENT}")}},
            "cursor": {"type": "string", "description": "Where the next page begins"},
            "hasMore": {"type": "boolean", "description": "More can be read at once"},
        },
    })
}
