//! The surface of tokens: the exchange of a key for one, and the public keys that verify it.

use serde_json::json;

use crate::api::openapi::errors;
use crate::api::openapi::operation::{Operation, json_response};
use crate::api::openapi::sections::Sections;

pub(in crate::api::openapi) fn add(sections: &mut Sections) {
    let token = json!({
        "type": "object",
        "required": ["token", "expiresIn"],
        "properties": {
            "token": {"type": "string", "description": "For the header Authorization: Bearer"},
            "expiresIn": {"type": "integer", "format": "int64", "description": "Seconds"},
        },
    });
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    sections.schemas.add("rowgate.token", &token);
    let exchange =
        Operation::new("exchange_key", "rowgate", "A token for the API key, which lives for an hour at most")
            .security(&["apiKey"])
            .responds("200", json_response("The token", &reference("rowgate.token")))
            .refuses(errors::OF_ANY.into_iter().chain(["413"]));
    sections.paths.add("/api/auth/apikeys/exchange", &json!({"post": exchange.value()}));
    let keys = json!({
        "type": "object",
        "required": ["keys"],
        "properties": {"keys": {"type": "array", "items": {"type": "object"}}},
    });
    sections.schemas.add("rowgate.jwks", &keys);
    let public_keys =
        Operation::new("public_keys", "rowgate", "The public keys that tokens are verified with")
            .security(&[])
            .responds("200", json_response("A JSON Web Key Set", &reference("rowgate.jwks")))
            .refuses(["413", "414", "431", "5XX"]);
    sections.paths.add("/.well-known/jwks.json", &json!({"get": public_keys.value()}));
}
