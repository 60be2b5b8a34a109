//! What a request of GraphQL over HTTP holds: in the body of a POST, or in the query string of a GET.

use std::borrow::Cow;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use rowgate_core::percent;
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::request::{self, Input};

use super::document::value::{Value, Variables};

/// A request whose document is not parsed yet.
#[derive(Debug, Default)]
pub(crate) struct GraphQlRequest {
    /// `None`: it is named by `hash`.
    pub(crate) query: Option<String>,
    pub(crate) operation_name: Option<String>,
    pub(crate) variables: Variables,
    /// Of a persisted operation: the SHA-256 of its text in hexadecimal.
    pub(crate) hash: Option<String>,
}

impl GraphQlRequest {
    /// The body of a POST.
    pub(crate) fn of_body(body: &[u8]) -> Result<GraphQlRequest, Problem> {
        let text = std::str::from_utf8(body).map_err(|_| wrong("the body is not UTF-8"))?;
        let raw = text.trim_matches([' ', '\t', '\r', '\n']);
        // read whole: what is asked of its parts is no JSON otherwise
        serde_json::from_str::<&serde_json::value::RawValue>(raw)
            .map_err(|_| wrong("the body is no JSON; send an object with query"))?;
        let input =
            request::input(raw).map_err(|_| wrong("the body is no JSON; send an object with query"))?;
        match input {
            Input::Object(raw) => {
                let fields = request::fields(raw).map_err(|_| wrong("the body is no JSON"))?;
                GraphQlRequest::of_fields(fields)
            }
            Input::List(_) => Err(wrong(
                "the body is a list, and one request has one operation; send an object with query, and several requests for several operations",
            )),
            _ => Err(wrong("the body is no object; send one with query")),
        }
    }

    /// The query string of a GET.
    pub(crate) fn of_query(query: &str) -> Result<GraphQlRequest, Problem> {
        let mut decoded = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plus = value.replace('+', " ");
            let value =
                percent::decode(&plus).map_err(|_| wrong("the query string has a % that escapes nothing"))?;
            decoded.push((name, value.into_owned()));
        }
        let mut fields: Vec<(String, Input<'_>)> = Vec::new();
        for (name, value) in &decoded {
            let value = match *name {
                "query" | "operationName" => Input::Text(value.clone()),
                "variables" | "extensions" if value.is_empty() => Input::Null,
                "variables" | "extensions" => serde_json::from_str::<&serde_json::value::RawValue>(value)
                    .ok()
                    .and_then(|_| request::input(value.trim()).ok())
                    .ok_or_else(|| wrong(&format!("{name} of the query string is no JSON")))?,
                _ => continue,
            };
            fields.push(((*name).to_owned(), value));
        }
        GraphQlRequest::of_fields(fields)
    }

    fn of_fields(fields: Vec<(String, Input<'_>)>) -> Result<GraphQlRequest, Problem> {
        let mut request = GraphQlRequest::default();
        for (name, value) in fields {
            match (name.as_str(), value) {
                (_, Input::Null) => {}
                ("query", Input::Text(text)) => request.query = Some(text),
                ("query", _) => return Err(wrong("query is no string")),
                ("operationName", Input::Text(text)) => {
                    request.operation_name = Some(text).filter(|text| !text.is_empty());
                }
                ("operationName", _) => return Err(wrong("operationName is no string")),
                ("variables", Input::Object(raw)) => {
                    let Some(Value::Object(fields)) = Value::of_json(raw) else {
                        return Err(wrong("variables is no JSON, or nests too deep"));
                    };
                    request.variables = fields.into_iter().collect();
                }
                ("variables", _) => return Err(wrong("variables is no object")),
                ("extensions", Input::Object(raw)) => request.hash = hash(raw)?,
                ("extensions", _) => return Err(wrong("extensions is no object")),
                _ => {}
            }
        }
        match request.query.is_none() && request.hash.is_none() {
            true => Err(wrong("the request has no query; send an object with query, a string")),
            false => Ok(request),
        }
    }
}

/// The hash of `extensions.persistedQuery`, as Apollo's clients send it.
fn hash(raw: &str) -> Result<Option<String>, Problem> {
    let Some(Value::Object(extensions)) = Value::of_json(raw) else {
        return Err(wrong("extensions is no JSON, or nests too deep"));
    };
    let Some((_, of)) = extensions.into_iter().find(|(name, _)| name == "persistedQuery") else {
        return Ok(None);
    };
    let Value::Object(of) = of else { return Err(wrong("extensions.persistedQuery is no object")) };
    let version = of.iter().find(|(name, _)| name == "version").map(|(_, value)| value.clone());
    match (of.into_iter().find(|(name, _)| name == "sha256Hash"), version) {
        (Some((_, Value::Text(hash))), Some(Value::Number(version))) if version == "1" => {
            Ok(Some(hash.to_ascii_lowercase()))
        }
        _ => Err(wrong("extensions.persistedQuery needs version 1 and sha256Hash, a string")),
    }
}

fn wrong(message: &str) -> Problem {
    Problem::new(Code::BadRequest, message)
}

/// How an answer is labelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaType {
    /// A request that was understood is 200, whatever became of it.
    Json,
    /// A request that was not executed is an error of HTTP, too.
    GraphQlResponse,
    /// Server-sent events, as a subscription needs.
    EventStream,
}

impl MediaType {
    /// The one that the client prefers; `application/json` where it does not say.
    pub(crate) fn of(headers: &HeaderMap) -> MediaType {
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut best: Option<(f32, MediaType)> = None;
        for range in values.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let media_type = match parts.next().map(str::to_ascii_lowercase).map(Cow::Owned).as_deref() {
                Some("application/graphql-response+json") => MediaType::GraphQlResponse,
                Some("text/event-stream") => MediaType::EventStream,
                Some("application/json" | "application/*" | "*/*") => MediaType::Json,
                _ => continue,
            };
            let quality =
                parts.find_map(|part| part.strip_prefix("q=")).and_then(|q| q.parse().ok()).unwrap_or(1.0);
            if best.is_none_or(|(known, _)| known < quality) {
                best = Some((quality, media_type));
            }
        }
        best.map_or(MediaType::Json, |(_, media_type)| media_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_media_type_is_the_one_of_the_highest_quality() {
        for (accept, expected) in [
            ("", MediaType::Json),
            ("*/*", MediaType::Json),
            ("application/json", MediaType::Json),
            ("text/html", MediaType::Json),
            ("application/graphql-response+json", MediaType::GraphQlResponse),
            (
                "application/graphql-response+json; charset=utf-8, application/json; charset=utf-8",
                MediaType::GraphQlResponse,
            ),
            ("application/json, application/graphql-response+json", MediaType::Json),
            ("application/json;q=0.5, application/graphql-response+json", MediaType::GraphQlResponse),
        ] {
            let headers = [(ACCEPT, accept.parse().expect("a value"))].into_iter().collect();
            assert_eq!(MediaType::of(&headers), expected, "{accept}");
        }
    }

    #[test]
    fn numbers_of_variables_keep_their_text() {
        let body = br#"{"query": "{a}", "variables": {"x": 1.00000000000000000001, "y": [{"z": 1e400}]}}"#;
        let request = GraphQlRequest::of_body(body).expect("a request");
        assert_eq!(request.variables["x"], Value::Number("1.00000000000000000001".to_owned()));
        assert_eq!(request.variables["y"].json(), r#"[{"z":1e400}]"#);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for body in [
            "",
            "[]",
            "[{\"query\": \"{a}\"}]",
            "{}",
            "1",
            "{\"query\": 1}",
            "{\"query\": \"{a}\", \"variables\": []}",
            "{\"query\": \"{a}\", \"operationName\": {}}",
            "{\"query\": \"{a}\"",
            "{\"query\": \"{a}\", \"extensions\": 7}",
        ] {
            assert!(GraphQlRequest::of_body(body.as_bytes()).is_err(), "{body}");
        }
        for query in ["", "variables={}", "query={a}&variables=[", "query=%zz", "query={a}&extensions=1"] {
            assert!(GraphQlRequest::of_query(query).is_err(), "{query}");
        }
        assert!(GraphQlRequest::of_query("query=%7Ba%7D&variables=&extensions={}").is_ok());
    }
}
