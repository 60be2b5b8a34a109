//! The surface REST: the list of entities, and the collection, the rows or the call of each entity that the key may use.
//!
//! Relationships: `$expand` is one of the options of [`parameters::of_reads`], and its members stand beside the fields of
//! [`row_schema`].

use rowgate_core::name::TenantSlug;
use rowgate_sql::catalog::{Catalog, Entity, Field, Routine, Scope};
use serde_json::{Map, Value, json};

use crate::api::openapi::access::{Access, Resolver, Rows, Written, arguments};
use crate::api::openapi::operation::{Operation, json_body, json_response};
use crate::api::openapi::schemas::Column;
use crate::api::openapi::sections::Sections;
use crate::api::openapi::{errors, examples, parameters};

/// What the listing answers with.
const ENTITY: &str = "rowgate.entity";

/// Adds what the scope may do over REST.
pub(in crate::api::openapi) fn add(
    tenant: &TenantSlug,
    catalog: &Catalog,
    scope: &Scope,
    sections: &mut Sections,
) {
    let base = format!("/auth/{tenant}/api");
    let listing = Operation::new("list_entities", "rowgate", "The entities that this key may read or call")
        .responds("200", json_response("The entities", &list_of(ENTITY)))
        .refuses(errors::OF_ANY);
    sections.paths.add(&base, &json!({"get": listing.value()}));
    sections.schemas.add(ENTITY, &entity_schema());
    parameters::shared(&mut sections.parameters, catalog.limits.max_page_size);
    let resolver = Resolver::new(catalog, scope);
    for entity in catalog.entities.values() {
        match resolver.access(entity) {
            Some(Access::Rows(rows)) => add_rows(&base, &rows, sections),
            Some(Access::Call(entity, routine)) => add_call(&base, entity, routine, sections),
            None => {}
        }
    }
}

fn add_rows(base: &str, rows: &Rows<'_>, sections: &mut Sections) {
    let name = rows.entity.name.as_str();
    add_schemas(rows, sections);
    let (of_collection, of_row) = match rows.lists || rows.reads {
        true => parameters::of_reads(rows, &mut sections.parameters),
        false => (Vec::new(), Vec::new()),
    };
    let mut collection = Map::new();
    if rows.lists {
        let operation = Operation::new(&format!("list_{name}"), name, &format!("Read rows of {name}"))
            .takes(of_collection)
            .responds("200", json_response("A page of rows", &reference(name, "page")))
            .refuses(errors::OF_ANY.into_iter().chain(errors::OF_ROWS));
        collection.insert("get".to_owned(), operation.value());
    }
    if rows.creates.is_some() {
        let one = reference(name, "create");
        let many = json!({"type": "array", "minItems": 1, "items": one});
        let operation =
            Operation::new(&format!("create_{name}"), name, &format!("Create rows of {name}, all or none"))
                .takes(vec![parameters::reference("prefer")])
                .body(json_body(&json!({"oneOf": [one, many]}), true))
                .responds("201", created(name))
                .responds("204", minimal())
                .refuses(of_writes(rows));
        collection.insert("post".to_owned(), operation.value());
    }
    if !collection.is_empty() {
        sections.paths.add(&format!("{base}/{name}"), &Value::Object(collection));
    }
    if let Some((key, parameters)) = parameters::key(rows) {
        let item = row_operations(rows, of_row);
        if !item.is_empty() {
            let mut path_item = Map::from_iter([("parameters".to_owned(), json!(parameters))]);
            path_item.extend(item);
            sections.paths.add(&format!("{base}/{name}{key}"), &Value::Object(path_item));
        }
    }
}

/// The methods of a row's own address.
fn row_operations(rows: &Rows<'_>, of_row: Vec<Value>) -> Map<String, Value> {
    let name = rows.entity.name.as_str();
    let mut item = Map::new();
    if rows.reads {
        let tag = rows.is_tagged().then(|| parameters::reference("if-none-match"));
        let what = "The row; an empty list where this key sees none";
        let mut operation = Operation::new(&format!("read_{name}"), name, &format!("Read a row of {name}"))
            .takes(of_row.into_iter().chain(tag).collect())
            .responds("200", with_tag(rows, json_response(what, &reference(name, "rows"))));
        if rows.is_tagged() {
            operation = operation.responds("304", json!({"description": "The row is as it was"}));
        }
        let operation = operation.refuses(errors::OF_ANY.into_iter().chain(errors::OF_ROWS));
        item.insert("get".to_owned(), operation.value());
    }
    let upserts = [
        ("patch", "update", "Change fields of a row", "change", &rows.changes),
        ("put", "replace", "Replace a row", "replace", &rows.replaces),
    ];
    for (method, verb, summary, schema, written) in upserts {
        if written.is_none() {
            continue;
        }
        let operation =
            Operation::new(&format!("{verb}_{name}"), name, &format!("{summary} of {name}{}", or_make(rows)))
                .takes(["prefer", if_match(rows), "if-none-match-any"].map(parameters::reference).to_vec())
                .body(json_body(&reference(name, schema), true));
        let operation = match rows.updates {
            true => {
                let changed = json_response("The row as it was stored", &reference(name, "rows"));
                operation.responds("200", with_tag(rows, changed))
            }
            false => operation,
        };
        let operation = if rows.makes { operation.responds("201", created(name)) } else { operation };
        let operation = operation.responds("204", minimal());
        item.insert(method.to_owned(), operation.refuses(of_writes(rows).chain(errors::OF_VERSIONS)).value());
    }
    if rows.deletes {
        let operation = Operation::new(&format!("delete_{name}"), name, &format!("Delete a row of {name}"))
            .takes(vec![parameters::reference("if-match-any")])
            .responds("204", json!({"description": "The row was deleted"}))
            .refuses(of_writes(rows));
        item.insert("delete".to_owned(), operation.value());
    }
    item
}

fn or_make(rows: &Rows<'_>) -> &'static str {
    match (rows.updates, rows.makes) {
        (true, true) => ", or create it",
        (false, true) => " that does not exist: create it",
        _ => "",
    }
}

fn if_match(rows: &Rows<'_>) -> &'static str {
    if rows.entity.version().is_some() { "if-match" } else { "if-match-any" }
}

fn of_writes(rows: &Rows<'_>) -> impl Iterator<Item = &'static str> + use<> {
    let of_views = (rows.entity.kind == rowgate_sql::catalog::EntityKind::View).then_some(errors::OF_VIEWS);
    errors::OF_ANY.into_iter().chain(errors::OF_ROWS).chain(errors::OF_WRITES).chain(of_views)
}

fn created(name: &str) -> Value {
    let mut response = json_response("The rows as they were stored", &reference(name, "rows"));
    let location =
        json!({"description": "The URL of the one row", "schema": {"type": "string", "format": "uri"}});
    response["headers"] = json!({"Location": location});
    response
}

fn minimal() -> Value {
    json!({"description": "Done; the rows were not asked for"})
}

fn with_tag(rows: &Rows<'_>, mut response: Value) -> Value {
    if rows.is_tagged() {
        let what = "The version of the row, for If-Match and If-None-Match";
        response["headers"] = json!({"ETag": {"description": what, "schema": {"type": "string"}}});
    }
    response
}

/// A schema of the entity: its rows without a part, else what goes with them.
fn reference(entity: &str, part: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{entity}.{part}")})
}

fn list_of(schema: &str) -> Value {
    let items = json!({"$ref": format!("#/components/schemas/{schema}")});
    json!({
        "type": "object", "required": ["value"], "properties": {"value": {"type": "array", "items": items}},
    })
}

fn add_schemas(rows: &Rows<'_>, sections: &mut Sections) {
    let name = rows.entity.name.as_str();
    let row = row_schema(rows, sections);
    sections.schemas.add(name, &row);
    let list = list_of(name);
    if rows.lists {
        let mut page = list.clone();
        let what = "The URL of the next page, where there is one";
        page["properties"]["nextLink"] = json!({"type": "string", "format": "uri", "description": what});
        let what = "How many rows there are on all pages, where $count=true asks for it";
        page["properties"]["count"] =
            json!({"type": "integer", "format": "int64", "minimum": 0, "description": what});
        sections.schemas.add(&format!("{name}.page"), &page);
    }
    sections.schemas.add(&format!("{name}.rows"), &list);
    let version = rows.version();
    for (part, written, version) in [
        ("create", &rows.creates, None),
        ("change", &rows.changes, version),
        ("replace", &rows.replaces, version),
    ] {
        if let Some(written) = written {
            let schema = body_schema(rows, written, version, sections);
            sections.schemas.add(&format!("{name}.{part}"), &schema);
        }
    }
}

/// A row as it is read. No field of it is required: `$select` chooses.
fn row_schema(rows: &Rows<'_>, sections: &mut Sections) -> Value {
    let mut properties = properties(rows, &rows.readable, sections, |field| field.nullable);
    for relationship in &rows.relationships {
        let row = json!({"$ref": format!("#/components/schemas/{}", relationship.to)});
        let schema = match relationship.to_one {
            true => json!({"anyOf": [row, {"type": "null"}]}),
            false => json!({"type": "array", "items": row}),
        };
        properties.insert(relationship.name.clone(), schema);
        if !relationship.to_one {
            let name = |what: &str| format!("{}@{what}", relationship.name);
            properties.insert(name("hasMore"), json!({"type": "boolean"}));
            properties.insert(name("count"), json!({"type": "integer", "format": "int64", "minimum": 0}));
        }
    }
    json!({"type": "object", "properties": properties, "examples": [rows.example(&rows.readable)]})
}

/// What a body may hold, and no more than that. `version`: the field by which a change names the row's version.
fn body_schema(rows: &Rows<'_>, written: &Written, version: Option<usize>, sections: &mut Sections) -> Value {
    let fields: Vec<usize> = written.fields.iter().copied().chain(version).collect();
    let properties = properties(rows, &fields, sections, |field| field.takes_null);
    let mut schema = json!({
        "type": "object", "properties": properties, "additionalProperties": false,
        "examples": [rows.example(&written.fields)],
    });
    if !written.required.is_empty() {
        let names: Vec<&str> = written.required.iter().map(|at| rows.field(*at).name.as_str()).collect();
        schema["required"] = json!(names);
    }
    schema
}

fn properties(
    rows: &Rows<'_>,
    fields: &[usize],
    sections: &mut Sections,
    takes_null: impl Fn(&Field) -> bool,
) -> Map<String, Value> {
    let mut properties = Map::new();
    for &at in fields {
        let field = rows.field(at);
        let column = Column { ty: &field.ty, labels: rows.labels(at), takes_null: takes_null(field) };
        let schema = column.schema(&mut sections.composites, &mut sections.schemas);
        properties.insert(field.name.clone(), schema);
    }
    properties
}

fn add_call(base: &str, entity: &Entity, routine: &Routine, sections: &mut Sections) {
    let name = entity.name.as_str();
    let (mut inputs, mut required, mut example) = (Map::new(), Vec::new(), Map::new());
    for (param, is_required) in arguments(routine) {
        let column = Column { ty: &param.ty, labels: &[], takes_null: true };
        let schema = column.schema(&mut sections.composites, &mut sections.schemas);
        inputs.insert(param.name.clone(), schema);
        example.extend(examples::value(&param.ty, &[]).map(|value| (param.name.clone(), value)));
        required.extend(is_required.then_some(param.name.as_str()));
    }
    let needs_body = !required.is_empty();
    let mut call = json!({
        "type": "object", "properties": inputs, "additionalProperties": false, "examples": [example],
    });
    if needs_body {
        call["required"] = json!(required);
    }
    sections.schemas.add(&format!("{name}.call"), &call);
    let mut outputs = Map::new();
    for output in routine.returns.outputs() {
        let column = Column { ty: &output.ty, labels: &[], takes_null: true };
        outputs.insert(output.name.clone(), column.schema(&mut sections.composites, &mut sections.schemas));
    }
    let names: Vec<&String> = outputs.keys().collect();
    sections.schemas.add(name, &json!({"type": "object", "required": names, "properties": outputs}));
    sections.schemas.add(&format!("{name}.rows"), &list_of(name));
    let operation = Operation::new(&format!("call_{name}"), name, &format!("Call {name}"))
        .takes(vec![parameters::reference("prefer")])
        .body(json_body(&reference(name, "call"), needs_body))
        .responds("201", json_response("What the routine gives", &reference(name, "rows")))
        .responds("204", minimal())
        .refuses(errors::OF_ANY.into_iter().chain(errors::OF_ROWS).chain(errors::OF_WRITES));
    sections.paths.add(&format!("{base}/{name}"), &json!({"post": operation.value()}));
}

fn entity_schema() -> Value {
    let names = json!({"type": "array", "items": {"type": "string"}});
    json!({
        "type": "object",
        "required": ["name", "kind", "url", "fields"],
        "properties": {
            "name": {"type": "string"},
            "kind": {"type": "string", "enum": ["Table", "View", "Procedure"]},
            "url": {"type": "string", "format": "uri"},
            "keyFields": names,
            "parameters": names,
            "fields": names,
        },
    })
}
