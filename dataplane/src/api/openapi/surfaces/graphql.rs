//! The surface of GraphQL: where requests are sent. What they may ask for its own introspection says.

use rowgate_core::name::TenantSlug;
use serde_json::{Value, json};

use crate::api::openapi::errors;
use crate::api::openapi::operation::{Operation, json_body};
use crate::api::openapi::sections::Sections;

const REQUEST: &str = "rowgate.graphqlRequest";
const ANSWER: &str = "rowgate.graphqlAnswer";

pub(in crate::api::openapi) fn add(tenant: &TenantSlug, sections: &mut Sections) {
    let object = json!({"type": ["object", "null"]});
    let text = json!({"type": ["string", "null"]});
    sections.schemas.add(
        REQUEST,
        &json!({
            "type": "object",
            "properties": {
                "query": {"type": ["string", "null"], "description": "The document; left out where extensions names it by its hash"},
                "operationName": text,
                "variables": object,
                "extensions": object,
            },
            "examples": [{"query": "{ __typename }"}],
        }),
    );
    sections.schemas.add(
        ANSWER,
        &json!({
            "type": "object",
            "properties": {
                "data": {"type": ["object", "null"]},
                "errors": {"type": "array", "items": {
                    "type": "object",
                    "required": ["message"],
                    "properties": {
                        "message": {"type": "string"},
                        "path": {"type": "array"},
                        "locations": {"type": "array", "items": {"type": "object"}},
                        "extensions": {"type": "object", "properties": {"code": {"type": "string"}}},
                    },
                }},
            },
        }),
    );
    let parameter = |name: &str, what: &str| json!({"name": name, "in": "query", "description": what, "schema": {"type": "string"}});
    let parameters = vec![
        parameter("query", "The document, of a query"),
        parameter("operationName", "Which operation of the document runs"),
        parameter("variables", "An object as JSON"),
        parameter("extensions", "An object as JSON"),
    ];
    let get = operation("graphql_query", "A GraphQL query").takes(parameters);
    let body = json_body(&json!({"$ref": format!("#/components/schemas/{REQUEST}")}), true);
    let post = operation("graphql", "A GraphQL query or mutation").body(body);
    let path = format!("/auth/{tenant}/graphql");
    let (get, post) = (answered(get.refuses(["405"])), answered(post));
    sections.paths.add(&path, &json!({"get": get.value(), "post": post.value()}));
}

fn operation(id: &str, summary: &str) -> Operation {
    Operation::new(id, "rowgate", summary).refuses(errors::OF_ANY.into_iter().chain(["413"]))
}

/// Errors of GraphQL are not shaped as those of the rest.
fn answered(operation: Operation) -> Operation {
    let answer = json!({"$ref": format!("#/components/schemas/{ANSWER}")});
    let response = |what: &str, schema: &Value| {
        json!({"description": what, "content": {
            "application/json": {"schema": schema},
            "application/graphql-response+json": {"schema": schema},
        }})
    };
    let problem = json!({"anyOf": [answer, {"$ref": "#/components/schemas/rowgate.problem"}]});
    operation
        .responds("200", response("Data, or errors", &answer))
        .responds("400", response("The request was not executed", &problem))
}
