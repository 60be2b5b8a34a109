//! The surface of SQL: one operation, since a query names its tables itself.

use serde_json::{Value, json};

use crate::api::openapi::errors;
use crate::api::openapi::operation::{Operation, json_body, json_response};
use crate::api::openapi::sections::Sections;
use crate::execute::sql::MAX_ROWS;

const QUERY: &str = "rowgate.sqlQuery";
const ROWS: &str = "rowgate.sqlRows";

pub(in crate::api::openapi) fn add(sections: &mut Sections) {
    sections.schemas.add(QUERY, &query());
    sections.schemas.add(ROWS, &rows());
    let reference = |schema: &str| json!({"$ref": format!("#/components/schemas/{schema}")});
    let plan = json!({
        "type": "object",
        "required": ["plan"],
        "properties": {"plan": {"description": "As EXPLAIN (FORMAT JSON) of PostgreSQL gives it"}},
    });
    let answer = json!({"oneOf": [reference(ROWS), plan]});
    let operation =
        Operation::new("sql", "rowgate", "The rows of one SELECT, as far as the API key may read them")
            .body(json_body(&reference(QUERY), true))
            .responds("200", json_response("The rows, or the plan where explain is true", &answer))
            .refuses(errors::OF_ANY.into_iter().chain(["413"]));
    sections.paths.add("/api/ddl/sql", &json!({"post": operation.value()}));
}

fn query() -> Value {
    json!({
        "type": "object",
        "required": ["query"],
        "additionalProperties": false,
        "properties": {
            "query": {"type": "string", "description": "One SELECT of PostgreSQL; @name stands for a parameter"},
            "parameters": {"type": ["object", "null"], "additionalProperties": true,
                "description": "The value of each @name, in JSON as in rows"},
            "explain": {"type": ["boolean", "null"],
                "description": "Gives the plan instead of the rows; for API keys without a scope"},
        },
        "examples": [{"query": "select 7 + @n::int as n", "parameters": {"n": 1}}],
    })
}

fn rows() -> Value {
    let column = json!({
        "type": "object",
        "required": ["name", "type"],
        "properties": {
            "name": {"type": "string"},
            "type": {"type": "string", "description": "As format_type of PostgreSQL names it"},
        },
    });
    json!({
        "type": "object",
        "required": ["columns", "value", "truncated"],
        "properties": {
            "columns": {"type": "array", "items": column},
            "value": {"type": "array", "items": {"type": "object"}, "maxItems": MAX_ROWS},
            "truncated": {"type": "boolean", "description": "Whether rows were left out"},
        },
    })
}
