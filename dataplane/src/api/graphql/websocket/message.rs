//! The messages of `graphql-transport-ws`.

use rowgate_core::problem::Problem;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::graphql::document::value::json_text;
use crate::api::graphql::request::GraphQlRequest;

/// What a client sends.
pub(super) enum ClientMessage {
    /// Texts of its payload, by name.
    Init(Vec<(String, String)>),
    /// With its payload as JSON.
    Ping(Option<String>),
    Pong,
    Subscribe {
        id: String,
        request: Result<GraphQlRequest, Problem>,
    },
    Complete {
        id: String,
    },
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

impl ClientMessage {
    /// `None`: it is no message of the protocol.
    pub(super) fn parse(text: &str) -> Option<ClientMessage> {
        let Raw { kind, id, payload } = serde_json::from_str(text).ok()?;
        let id = id.filter(|id| !id.is_empty());
        Some(match (kind.as_str(), id) {
            ("connection_init", None) => ClientMessage::Init(texts(payload)?),
            ("ping", None) => ClientMessage::Ping(payload.map(|payload| payload.get().to_owned())),
            ("pong", None) => ClientMessage::Pong,
            ("complete", Some(id)) => ClientMessage::Complete { id },
            ("subscribe", Some(id)) => {
                ClientMessage::Subscribe { id, request: GraphQlRequest::of_body(payload?.get().as_bytes()) }
            }
            _ => return None,
        })
    }
}

fn texts(payload: Option<&RawValue>) -> Option<Vec<(String, String)>> {
    let Some(payload) = payload else { return Some(Vec::new()) };
    match serde_json::from_str(payload.get()).ok()? {
        Value::Null => Some(Vec::new()),
        Value::Object(members) => {
            let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
            Some(members.into_iter().filter_map(text).collect())
        }
        _ => None,
    }
}

pub(super) const ACK: &str = "{\"type\":\"connection_ack\"}";

pub(super) fn pong(payload: Option<&str>) -> String {
    match payload {
        Some(payload) => format!("{{\"type\":\"pong\",\"payload\":{payload}}}"),
        None => "{\"type\":\"pong\"}".to_owned(),
    }
}

/// `answer`: an object with data, errors or both, as JSON.
pub(super) fn next(id: &str, answer: &[u8]) -> String {
    let answer = String::from_utf8_lossy(answer);
    format!("{{\"id\":{},\"type\":\"next\",\"payload\":{answer}}}", json_text(id))
}

/// `errors`: a list as JSON.
pub(super) fn error(id: &str, errors: &str) -> String {
    format!("{{\"id\":{},\"type\":\"error\",\"payload\":{errors}}}", json_text(id))
}

pub(super) fn complete(id: &str) -> String {
    format!("{{\"id\":{},\"type\":\"complete\"}}", json_text(id))
}
