//! The refusals of every surface: one shape, and for each status the codes that it may have, with an example of each.

use std::collections::BTreeMap;

use rowgate_core::problem::{Code, Problem};
use serde_json::{Map, Value, json};

use crate::api::openapi::sections::Sections;

/// The schema of a refusal.
const PROBLEM: &str = "rowgate.problem";

/// The statuses of any request with a key.
pub(super) const OF_ANY: [&str; 7] = ["400", "401", "403", "414", "429", "431", "5XX"];
/// Of a request for rows, besides.
pub(super) const OF_ROWS: [&str; 2] = ["404", "413"];
/// Of a write or a call, besides.
pub(super) const OF_WRITES: [&str; 2] = ["409", "422"];
/// Of a write that may name the version of a row, besides.
pub(super) const OF_VERSIONS: [&str; 2] = ["412", "428"];
/// Of a write to a view, besides.
pub(super) const OF_VIEWS: &str = "405";

/// Adds every refusal to the document.
pub(super) fn add(sections: &mut Sections) {
    sections.schemas.add(PROBLEM, &schema());
    let mut by_status: BTreeMap<&str, Vec<Code>> = BTreeMap::new();
    for code in Code::ALL {
        by_status.entry(status(code)).or_default().push(code);
    }
    for (status, codes) in by_status {
        let names: Vec<String> = codes.iter().map(|code| format!("{code:?}")).collect();
        let examples: Map<String, Value> = names
            .iter()
            .zip(&codes)
            .map(|(name, code)| (name.clone(), json!({"value": example(*code)})))
            .collect();
        let mut response = json!({
            "description": format!("The code is {}", names.join(", ")),
            "content": {"application/json": {
                "schema": {"$ref": format!("#/components/schemas/{PROBLEM}")},
                "examples": examples,
            }},
        });
        if let Some((header, description)) = header(status) {
            response["headers"] = json!({header: {"description": description, "schema": {"type": "string"}}});
        }
        sections.responses.add(status, &response);
    }
}

/// References to the responses of these statuses.
pub(super) fn responses<'a>(statuses: impl IntoIterator<Item = &'a str>) -> Map<String, Value> {
    let reference =
        |status: &str| (status.to_owned(), json!({"$ref": format!("#/components/responses/{status}")}));
    statuses.into_iter().map(reference).collect()
}

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["code", "message", "status", "requestId", "details"],
            "properties": {
                "code": {"type": "string", "description": "Stable; further codes may be added"},
                "message": {"type": "string", "description": "What to change"},
                "status": {"type": "integer", "format": "int32"},
                "requestId": {"type": "string"},
                "details": {"type": "array", "items": {"type": "string"}},
            },
        }},
    })
}

fn status(code: Code) -> &'static str {
    match code.status() {
        400 => "400",
        401 => "401",
        403 => "403",
        404 => "404",
        405 => "405",
        409 => "409",
        412 => "412",
        413 => "413",
        414 => "414",
        422 => "422",
        428 => "428",
        429 => "429",
        431 => "431",
        500.. => "5XX",
        other => unreachable!("no code has the status {other}"),
    }
}

fn header(status: &str) -> Option<(&'static str, &'static str)> {
    match status {
        "401" => Some(("WWW-Authenticate", "The ways to show a key or a token")),
        "405" => Some(("Allow", "The methods that this URL supports")),
        "429" | "5XX" => Some(("Retry-After", "Seconds after which another try may succeed")),
        _ => None,
    }
}

fn example(code: Code) -> Value {
    let message = match code {
        Code::Unauthorized => Problem::unauthorized().message,
        Code::RateLimited => Problem::rate_limited(1).message,
        Code::EntityNotFound => Problem::entity_not_found().message,
        Code::Internal => Problem::internal().message,
        Code::Unavailable => Problem::unavailable().message,
        Code::BodyShareExceeded => Problem::body_share_exceeded().message,
        Code::BodyBudgetExceeded => Problem::body_budget_exceeded().message,
        other => message(other).to_owned(),
    };
    json!({"error": {
        "code": code, "message": message, "status": code.status(),
        "requestId": "01k8z6v0m3n4p5q6r7s8t9v0w1", "details": [],
    }})
}

/// What a client may read under the code, where the whole of it depends on the request.
fn message(code: Code) -> &'static str {
    match code {
        Code::BadRequest => "$count is true or false; write $count=true, or leave it out",
        Code::InvalidFilter => "the text after eq is not a constant; put texts in single quotes",
        Code::InvalidOrderBy => "only asc or desc may follow a field in $orderby",
        Code::InvalidCursor => "$after belongs to another query; follow nextLink as it is",
        Code::UnknownField => "there is no field of that name",
        Code::InvalidValue => "the value is not a valid integer",
        Code::ReadOnlyColumn => "the field is set by the database; leave it out",
        Code::InvalidDestination => "url: the URL must begin with https://",
        Code::InvalidSql => "GETDATE() is not PostgreSQL's; write now()",
        Code::InvalidPayloadQuery => "payloadQuery: the text is not one SELECT with FOR JSON",
        Code::RoleMismatch => "X-MS-API-ROLE is not the role of this API key",
        Code::Forbidden => "the policies of the table do not let this API key change the row",
        Code::RowNotFound => "no row with this key is visible to this API key",
        Code::NotFound => "there is nothing at this URL",
        Code::MethodNotAllowed => "this URL does not support that method",
        Code::DirectDeleteBlocked => {
            "this table does not allow deletes; set the row's deletion flag with PATCH instead"
        }
        Code::StaleRow => {
            "the row changed after it was read; read it again, and apply the change to what you find"
        }
        Code::UniqueViolation => "a row with these values of a unique field, or of the key, already exists",
        Code::ForeignKeyViolation => "the row refers to a row that does not exist",
        Code::SerializationFailure => {
            "this row is being created and deleted concurrently, and nothing was written; retry"
        }
        Code::ManagedByKubernetes => {
            "a WebhookSubscription in Kubernetes declares this subscription; change it there"
        }
        Code::ConstraintViolation => "a check of the table forbids these values; change them",
        Code::ProcedureError => "what the routine says",
        Code::PreconditionFailed => "the row's version is not the one that If-Match names",
        Code::ExpectedTsRequired => "this table requires the row's version",
        Code::TooLarge => "the body is larger than 1 MiB; send less in one request",
        Code::UriTooLong => "the URL is longer than 16 KiB; use a shorter $filter or fewer options",
        Code::HeadersTooLarge => {
            "the URL and the headers together are larger than 16 KiB; send fewer or shorter headers"
        }
        Code::StatementTimeout => "the query exceeded the tenant's statement timeout",
        Code::Unauthorized
        | Code::RateLimited
        | Code::EntityNotFound
        | Code::Internal
        | Code::Unavailable
        | Code::BodyShareExceeded
        | Code::BodyBudgetExceeded => "",
    }
}
