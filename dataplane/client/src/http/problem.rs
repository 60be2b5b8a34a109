//! What the server says when it refuses a request.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// The problem of a refusal. Of an answer that is none of Rowgate's it has the status alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Problem {
    /// The stable code, such as `InvalidFilter`. Empty where the answer has none.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) details: Vec<String>,
    pub(crate) request_id: Option<String>,
}

#[derive(Deserialize)]
struct Body {
    error: Members,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members {
    code: String,
    message: String,
    #[serde(default)]
    details: Vec<Value>,
    #[serde(default)]
    request_id: Option<String>,
}

impl Problem {
    pub(crate) fn of_message(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), ..Problem::default() }
    }

    /// Of an answer with an error status, and whether Rowgate itself wrote it.
    #[must_use]
    pub(crate) fn of_answer(status: u16, body: &[u8]) -> (Problem, bool) {
        let Ok(Body { error }) = serde_json::from_slice(body) else {
            let what = format!(
                "the server answered with status {status} and no problem that Rowgate writes: is the URL that of a Rowgate server?"
            );
            return (Problem::of_message(what), false);
        };
        let Members { code, message, details, request_id } = error;
        let details = details.into_iter().map(|detail| match detail {
            Value::String(text) => text,
            other => other.to_string(),
        });
        (Problem { code, message, details: details.collect(), request_id }, true)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code.as_str() {
            "" => write!(f, "{}", self.message)?,
            code => write!(f, "{code}: {}", self.message)?,
        }
        for detail in &self.details {
            write!(f, "\n  {detail}")?;
        }
        match &self.request_id {
            Some(id) => write!(f, "\n  request id: {id}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_its_code_message_details_and_request() {
        let body = br#"{"error": {"code": "UnknownField", "message": "no field regio", "status": 400,
            "requestId": "01J", "details": ["did you mean region?", {"column": 3}]}}"#;
        let (problem, is_ours) = Problem::of_answer(400, body);
        assert!(is_ours);
        let shown =
            "UnknownField: no field regio\n  did you mean region?\n  {\"column\":3}\n  request id: 01J";
        assert_eq!(problem.to_string(), shown);
    }

    #[test]
    fn a_page_of_a_proxy_is_no_problem_of_ours() {
        for body in [&b""[..], b"<html>502</html>", b"{}", b"{\"error\": \"no\"}"] {
            let (problem, is_ours) = Problem::of_answer(502, body);
            assert!(!is_ours && problem.message.contains("502"), "{problem}");
        }
    }
}
