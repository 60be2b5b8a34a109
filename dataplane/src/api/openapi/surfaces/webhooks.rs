//! The surface of webhook subscriptions, where the key may read the events of a table.

use rowgate_sql::catalog::{Catalog, Scope};
use serde_json::{Value, json};

use crate::api::events::request::readable;
use crate::api::openapi::errors;
use crate::api::openapi::operation::{Operation, json_body, json_response};
use crate::api::openapi::sections::Sections;

const SUBSCRIPTION: &str = "rowgate.subscription";
const DRAFT: &str = "rowgate.subscriptionDraft";
const DELIVERY: &str = "rowgate.delivery";
const DEAD_LETTER: &str = "rowgate.deadLetter";
const BASE: &str = "/api/ddl/events/webhooks";

pub(in crate::api::openapi) fn add(catalog: &Catalog, scope: &Scope, sections: &mut Sections) {
    let entities = catalog.entities.values().filter(|entity| readable(catalog, scope, entity).is_some());
    let names: Vec<&str> = entities.map(|entity| entity.name.as_str()).collect();
    let Some(first) = names.first().copied() else { return };
    sections.schemas.add(DRAFT, &draft(&names, first));
    sections.schemas.add(SUBSCRIPTION, &subscription(&names));
    sections.schemas.add(DELIVERY, &delivery());
    sections.schemas.add(DEAD_LETTER, &dead_letter(&names));
    let create = operation("createSubscription", "Subscribes a receiver to changes of rows")
        .body(json_body(&json!({"allOf": [reference(DRAFT)], "required": ["name", "url"]}), true))
        .responds(
            "201",
            json_response("The subscription, and its secret, which is shown only here", &with_secret()),
        );
    let list = operation("listSubscriptions", "The subscriptions of this API key")
        .responds("200", listed("subscriptions", SUBSCRIPTION, false));
    sections.paths.add(BASE, &json!({"post": create.value(), "get": list.value()}));

    let get = of_one("getSubscription", "A subscription").responds("200", shown(SUBSCRIPTION));
    let patch = of_one(
        "changeSubscription",
        "Changes a part of a subscription; suspend: false enables one that is disabled",
    )
    .body(json_body(&reference(DRAFT), true))
    .responds("200", shown(SUBSCRIPTION))
    .refuses(["409"]);
    let delete = of_one("deleteSubscription", "Deletes a subscription with its dead letters")
        .responds("204", json!({"description": "It is deleted"}))
        .refuses(["409"]);
    let methods = json!({"get": get.value(), "patch": patch.value(), "delete": delete.value()});
    sections.paths.add(&format!("{BASE}/{{id}}"), &methods);

    let mut add = |path: &str, method: &str, operation: Operation| {
        sections.paths.add(&format!("{BASE}/{{id}}/{path}"), &json!({method: operation.value()}));
    };
    let deliveries = paged("listDeliveries", "The newest requests to the receiver", &[])
        .responds("200", listed("deliveries", DELIVERY, true));
    add("deliveries", "get", deliveries);
    let dead_letters = paged("listDeadLetters", "Batches that were given up, the newest first", &[])
        .responds("200", listed("deadLetters", DEAD_LETTER, true));
    add("dead-letters", "get", dead_letters);
    let one =
        with_parameters("getDeadLetter", "A dead letter, and which changes it holds", &[dead_letter_id()])
            .responds("200", shown(DEAD_LETTER));
    add("dead-letters/{dl}", "get", one);
    let redrive = with_parameters("redriveDeadLetter", "Sends a dead letter once more", &[dead_letter_id()])
        .responds("202", redriven());
    add("dead-letters/{dl}/redrive", "post", redrive);
    let redrive =
        of_one("redriveDeadLetters", "Sends every dead letter once more").responds("202", redriven());
    add("dead-letters/redrive", "post", redrive);
    let rotate =
        of_one("rotateSubscriptionSecret", "Makes a new secret; the one before signs beside it for 24 hours")
            .responds("200", rotated());
    add("secret/rotate", "post", rotate);
    let replay = of_one("replaySubscription", "Sends events once more, from a place before the present one")
        .body(json_body(&replay(), true))
        .responds("202", replayed());
    add("replay", "post", replay);
    let test =
        of_one("testSubscription", "Sends a signed message without events at once").responds("200", tested());
    add("test", "post", test);
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn operation(id: &str, summary: &str) -> Operation {
    Operation::new(id, "rowgate", summary).refuses(errors::OF_ANY.into_iter().chain(["413"]))
}

fn of_one(id: &str, summary: &str) -> Operation {
    with_parameters(id, summary, &[])
}

fn with_parameters(id: &str, summary: &str, more: &[Value]) -> Operation {
    let of_subscription = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
    operation(id, summary).takes([&[of_subscription], more].concat()).refuses(["404"])
}

fn paged(id: &str, summary: &str, more: &[Value]) -> Operation {
    let page = [
        json!({"name": "limit", "in": "query", "description": "How many at most",
            "schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}}),
        json!({"name": "before", "in": "query", "description": "The id behind which the page begins", "schema": {"type": "string"}}),
    ];
    with_parameters(id, summary, &[&page, more].concat())
}

fn dead_letter_id() -> Value {
    json!({"name": "dl", "in": "path", "required": true, "schema": {"type": "string"}})
}

fn shown(schema: &str) -> Value {
    json_response("As it is now", &reference(schema))
}

fn listed(name: &str, schema: &str, is_paged: bool) -> Value {
    let mut whole = json!({
        "type": "object", "required": [name], "properties": {name: {"type": "array", "items": reference(schema)}},
    });
    if is_paged {
        whole["properties"]["hasMore"] =
            json!({"type": "boolean", "description": "More stand before the last one"});
    }
    json_response("The newest first", &whole)
}

fn filter(names: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": {
            "tables": {"type": ["array", "null"], "items": {"type": "string"}, "minItems": 1,
                "description": "Entities or schema.table. Left out or null: all whose events the key may read", "examples": [names]},
            "ops": {"type": "array", "items": {"enum": ["insert", "update", "delete", "truncate"]}, "minItems": 1, "uniqueItems": true,
                "description": "Left out: insert, update and delete"},
        },
    })
}

fn members(names: &[&str]) -> Value {
    json!({
        "name": {"type": "string", "minLength": 1, "maxLength": 100},
        "url": {"type": "string", "format": "uri", "maxLength": 2048, "description": "https; public hosts"},
        "filter": filter(names),
        "payloadQuery": {"type": ["string", "null"], "description": "One SELECT with FOR JSON. Left out: the row"},
        "batch": {"type": "object", "properties": {
            "maxEvents": {"type": "integer", "minimum": 1, "maximum": 100, "default": 100},
            "maxBytes": {"type": "integer", "minimum": 1024, "maximum": 262_144, "default": 262_144},
        }},
        "retry": {"type": "object", "properties": {
            "maxAttempts": {"type": "integer", "minimum": 1, "maximum": 20, "default": 10},
            "initialDelay": {"type": "integer", "minimum": 1, "maximum": 3600, "default": 5, "description": "Seconds"},
            "maxDelay": {"type": "integer", "minimum": 1, "maximum": 86_400, "default": 3600, "description": "Seconds"},
            "disableOnGone": {"type": "boolean", "default": false, "description": "An answer 410 disables the subscription"},
        }},
        "headers": {"type": "object", "maxProperties": 20, "additionalProperties": {"type": "string", "maxLength": 1024},
            "description": "Sent with each request"},
        "suspend": {"type": "boolean", "default": false, "description": "Nothing is sent. false enables one that is disabled"},
    })
}

fn draft(names: &[&str], first: &str) -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": members(names),
        "examples": [{"name": "orders", "url": "https://example.com/hooks", "filter": {"tables": [first], "ops": ["insert", "update"]}}],
    })
}

fn subscription(names: &[&str]) -> Value {
    let mut properties = members(names);
    let more = json!({
        "id": {"type": "string"},
        "origin": {"enum": ["api", "kubernetes"]},
        "state": {"enum": ["enabled", "disabled"]},
        "reason": {"enum": ["DeadLetters", "Undelivered", "Gone", null]},
        "delivering": {"enum": ["Delivering", "Failing", "Suspended", "Disabled", "OwnerInactive"]},
        "cursor": {"type": "string", "description": "Everything before it is settled"},
        "consecutiveDeadLetters": {"type": "integer"},
        "deadLetters": {"type": "integer"},
        "lagEvents": {"type": "integer", "maximum": 10_000, "description": "Events that are not delivered; at most 10,000 are counted"},
        "oldestUndelivered": time_or_null(),
        "lastDelivery": time_or_null(),
        "lastError": {"type": ["string", "null"]},
        "lastErrorAt": time_or_null(),
        "createdAt": {"type": "string", "format": "date-time"},
    });
    if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
        properties.extend(more);
    }
    json!({"type": "object", "required": ["id", "name", "url", "filter", "state", "suspend", "cursor"], "properties": properties})
}

fn with_secret() -> Value {
    let secret = json!({"type": "object", "required": ["secret"], "properties": {"secret": secret()}});
    json!({"allOf": [reference(SUBSCRIPTION), secret]})
}

fn secret() -> Value {
    json!({"type": "string", "pattern": "^whsec_[A-Za-z0-9+/]+=*$", "description": "Signs; never shown again"})
}

fn rotated() -> Value {
    let schema = json!({"type": "object", "required": ["secret", "previousSignsForHours"],
        "properties": {"secret": secret(), "previousSignsForHours": {"type": "integer"}}});
    json_response("The new secret, which is shown only here", &schema)
}

fn time_or_null() -> Value {
    json!({"type": ["string", "null"], "format": "date-time"})
}

fn delivery() -> Value {
    json!({
        "type": "object",
        "required": ["id", "batch", "attempt", "at", "durationMs", "events", "bytes"],
        "properties": {
            "id": {"type": "string"},
            "batch": {"type": "string", "description": "The same over retries"},
            "attempt": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "durationMs": {"type": "integer"},
            "events": {"type": "integer"},
            "bytes": {"type": "integer"},
            "firstEvent": {"type": ["string", "null"]},
            "lastEvent": {"type": ["string", "null"]},
            "status": {"type": ["integer", "null"], "description": "Of the answer. null: there was none"},
            "error": {"type": ["string", "null"], "description": "null: it was delivered"},
            "request": {"type": ["string", "null"], "description": "The beginning of a body that was not delivered"},
            "response": {"type": ["string", "null"], "description": "The beginning of the answer"},
        },
    })
}

fn dead_letter(names: &[&str]) -> Value {
    json!({
        "type": "object",
        "required": ["id", "at", "events", "attempts", "firstEvent", "lastEvent"],
        "properties": {
            "id": {"type": "string", "description": "Of the batch"},
            "at": {"type": "string", "format": "date-time"},
            "events": {"type": "integer"},
            "attempts": {"type": "integer"},
            "firstEvent": {"type": "string"},
            "lastEvent": {"type": "string"},
            "lastStatus": {"type": ["integer", "null"]},
            "lastError": {"type": ["string", "null"]},
            "redriveRequestedAt": time_or_null(),
            "deliveredAt": time_or_null(),
            "changes": {"type": "array", "description": "Of one that is read alone", "items": {"type": "object", "properties": {
                "EventId": {"type": "string"},
                "op": {"enum": ["insert", "update", "delete", "truncate"]},
                "occurredAt": {"type": "string"},
                "entity": {"type": ["string", "null"], "examples": names},
            }}},
        },
    })
}

fn redriven() -> Value {
    let schema = json!({"type": "object", "required": ["deadLetters"], "properties": {"deadLetters": {"type": "integer"}}});
    json_response("So many are sent again", &schema)
}

fn replay() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "description": "Exactly one of the first three",
        "properties": {
            "fromRetentionStart": {"type": "boolean", "description": "true: the oldest event that is kept"},
            "fromEventId": {"type": "string", "description": "This event and those behind it"},
            "fromUtc": {"type": "string", "format": "date-time", "description": "What became visible then or later"},
            "dryRun": {"type": "boolean", "default": false, "description": "Only says what would be sent"},
        },
        "examples": [{"fromUtc": "2026-11-25T08:30:00Z", "dryRun": true}],
    })
}

fn replayed() -> Value {
    let schema = json!({"type": "object", "required": ["from", "events", "dryRun"], "properties": {
        "from": {"type": "string", "description": "Events behind it are sent"},
        "events": {"type": "integer", "maximum": 10_000, "description": "At most 10,000 are counted"},
        "dryRun": {"type": "boolean"},
    }});
    json_response("Where it begins again, and how much it is sent", &schema)
}

fn tested() -> Value {
    let schema = json!({"type": "object", "required": ["delivered", "status", "durationMs", "error"], "properties": {
        "delivered": {"type": "boolean"},
        "status": {"type": ["integer", "null"]},
        "durationMs": {"type": "integer"},
        "error": {"type": ["string", "null"]},
    }});
    json_response("What became of it", &schema)
}
