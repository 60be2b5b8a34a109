//! One operation of a document, and what requests and answers of JSON look like in it.

use serde_json::{Map, Value, json};

use crate::api::openapi::errors;

/// An operation while it is put together.
pub(super) struct Operation {
    members: Map<String, Value>,
    responses: Map<String, Value>,
}

impl Operation {
    pub(super) fn new(id: &str, tag: &str, summary: &str) -> Operation {
        let members = [("operationId", json!(id)), ("tags", json!([tag])), ("summary", json!(summary))];
        let members = members.map(|(name, value)| (name.to_owned(), value));
        Operation { members: Map::from_iter(members), responses: Map::new() }
    }

    fn with(mut self, name: &str, value: Value) -> Operation {
        self.members.insert(name.to_owned(), value);
        self
    }

    /// Options and headers.
    pub(super) fn takes(self, parameters: Vec<Value>) -> Operation {
        if parameters.is_empty() { self } else { self.with("parameters", json!(parameters)) }
    }

    pub(super) fn body(self, body: Value) -> Operation {
        self.with("requestBody", body)
    }

    /// Other ways to show who asks than those of the document.
    pub(super) fn security(self, schemes: &[&str]) -> Operation {
        let schemes: Vec<Value> = schemes.iter().map(|scheme| json!({*scheme: []})).collect();
        self.with("security", json!(schemes))
    }

    pub(super) fn responds(mut self, status: &str, response: Value) -> Operation {
        self.responses.insert(status.to_owned(), response);
        self
    }

    pub(super) fn refuses(mut self, statuses: impl IntoIterator<Item = &'static str>) -> Operation {
        self.responses.extend(errors::responses(statuses));
        self
    }

    pub(super) fn value(self) -> Value {
        let responses = Value::Object(self.responses.clone());
        Value::Object(self.with("responses", responses).members)
    }
}

pub(super) fn json_body(schema: &Value, is_required: bool) -> Value {
    json!({"required": is_required, "content": {"application/json": {"schema": schema}}})
}

pub(super) fn json_response(description: &str, schema: &Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}
