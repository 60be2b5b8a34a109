//! The surface of exports: jobs that write rows into files.

use rowgate_sql::catalog::{Catalog, Scope};
use serde_json::{Value, json};

use crate::api::openapi::errors;
use crate::api::openapi::operation::{Operation, json_body, json_response};
use crate::api::openapi::sections::Sections;

const EXPORT: &str = "rowgate.export";
const REQUEST: &str = "rowgate.exportRequest";
const BASE: &str = "/api/ddl/exports";

pub(in crate::api::openapi) fn add(catalog: &Catalog, scope: &Scope, sections: &mut Sections) {
    let may_read = |name| scope.entities.get(name).is_some_and(|rights| rights.read.contains(&true));
    let entities = catalog.entities.values().filter(|entity| entity.rest && entity.routine.is_none());
    let names: Vec<&str> =
        entities.filter(|entity| may_read(&entity.name)).map(|entity| entity.name.as_str()).collect();
    let Some(first) = names.first() else { return };
    sections.schemas.add(REQUEST, &request(&names, first));
    sections.schemas.add(EXPORT, &export());
    let create = operation("createExport", "Starts an export of an entity or of a query")
        .body(json_body(&reference(REQUEST), true))
        .responds("202", created())
        .refuses(["404", "422"]);
    let list = operation("listExports", "The exports of this API key, the newest first").responds(
        "200",
        json_response(
            "All that are kept",
            &json!({"type": "object", "required": ["value"],
                "properties": {"value": {"type": "array", "items": reference(EXPORT)}}}),
        ),
    );
    // where exports are off there is nothing
    let list = list.refuses(["404"]);
    sections.paths.add(BASE, &json!({"post": create.value(), "get": list.value()}));
    let get = of_one("getExport", "An export, with a new link to its file once it has one")
        .responds("200", json_response("As it is now", &reference(EXPORT)));
    let delete =
        of_one("deleteExport", "Cancels an export that has not ended; deletes one that has, with its file")
            .responds("204", json!({"description": "It is cancelled or deleted"}));
    sections.paths.add(&format!("{BASE}/{{id}}"), &json!({"get": get.value(), "delete": delete.value()}));
    sections.paths.add(&format!("{BASE}/{{id}}/file"), &json!({"get": file().value()}));
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn operation(id: &str, summary: &str) -> Operation {
    Operation::new(id, "rowgate", summary).refuses(errors::OF_ANY.into_iter().chain(["413"]))
}

fn id() -> Value {
    json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}})
}

fn of_one(id_of_operation: &str, summary: &str) -> Operation {
    operation(id_of_operation, summary).takes(vec![id()]).refuses(["404"])
}

fn created() -> Value {
    let mut response = json_response("The export, which waits", &reference(EXPORT));
    response["headers"] =
        json!({"Location": {"description": "Where the export is", "schema": {"type": "string"}}});
    response
}

fn file() -> Operation {
    let token = json!({"name": "token", "in": "query", "required": true, "schema": {"type": "string"},
        "description": "As in the url of the export, which has the whole address"});
    let range = json!({"name": "Range", "in": "header", "schema": {"type": "string"},
        "description": "A part of the file, such as bytes=1000-"});
    let bytes = |description: &str| {
        json!({"description": description, "content": {"application/octet-stream": {},
            "text/csv; charset=utf-8; header=present": {}, "application/x-ndjson": {},
            "application/vnd.apache.parquet": {}, "application/gzip": {}, "application/zstd": {}}})
    };
    operation("downloadExport", "The file of an export; the link is enough, no key is needed")
        .takes(vec![id(), token, range])
        .responds("200", bytes("The file"))
        .responds("206", bytes("The part that was asked for"))
        .responds("416", json!({"description": "The file has no such part"}))
        .refuses(["404"])
        .security(&[])
}

fn request(names: &[&str], first: &str) -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["format"],
        "properties": {
            "entity": {"enum": names, "description": "All its rows; or query"},
            "query": {"type": "string", "description": "One SELECT, as POST /api/ddl/sql takes it; or entity"},
            "parameters": {"type": "object", "description": "The values of @name in the query"},
            "format": {"enum": ["csv", "jsonl", "parquet"]},
            "select": {"type": "string", "description": "Fields of the entity, as $select takes them"},
            "filter": {"type": "string", "description": "A condition on the entity, as $filter takes it"},
            "orderby": {"type": "string", "description": "As $orderby takes it. Left out: in no order, which is faster"},
            "compression": {"enum": ["none", "gzip", "zstd"], "description": "Left out: zstd within Parquet, else none"},
            "csvSafe": {"type": "boolean", "default": false,
                "description": "In CSV, texts that a spreadsheet would run as a formula get an apostrophe in front"},
        },
        "examples": [{"entity": first, "format": "csv", "compression": "gzip"}],
    })
}

fn export() -> Value {
    let time =
        |description: &str| json!({"type": "string", "format": "date-time", "description": description});
    json!({
        "type": "object",
        "required": ["id", "file", "status", "rows", "bytes", "createdAt"],
        "properties": {
            "id": {"type": "string"},
            "file": {"type": "string", "description": "What the file is called where it is downloaded"},
            "status": {"enum": ["queued", "running", "succeeded", "failed", "cancelled"]},
            "queuePosition": {"type": "integer", "minimum": 0, "description": "Exports of the tenant that begin before it"},
            "rows": {"type": "integer", "minimum": 0},
            "bytes": {"type": "integer", "minimum": 0},
            "progress": {"type": "number", "minimum": 0, "maximum": 1,
                "description": "Estimated; left out where the number of rows is not known"},
            "url": {"type": "string", "format": "uri", "description": "The file; the link is enough to read it"},
            "urlExpiresAt": time("Each GET gives a new link"),
            "expiresAt": time("When the export and its file are deleted"),
            "eventCursor": {"type": "string", "description": "after of GET /api/ddl/events, for what has changed since"},
            "capped": {"type": "boolean", "description": "There are more rows than the file has"},
            "createdAt": time("When it was asked for"),
            "startedAt": time("When it began to run last"),
            "finishedAt": time("When it ended"),
            "error": {"type": "object", "required": ["code", "message"],
                "properties": {"code": {"type": "string"}, "message": {"type": "string"}}},
        },
    })
}
