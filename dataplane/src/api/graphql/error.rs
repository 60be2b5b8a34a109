//! Errors as GraphQL has them: a message, where in the document and in the answer, and our stable code.

use std::ops::Deref;

use async_graphql::{Pos, ServerError};
use rowgate_core::problem::{Code, Problem};
use serde::Serialize;

/// An error of a request, or of one field of it.
#[derive(Debug, Clone)]
pub(crate) struct GraphQlError(Box<Fault>);

#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) problem: Problem,
    pub(crate) locations: Vec<Pos>,
    /// Keys of the answer, from its root on. Empty: the whole request.
    pub(crate) path: Vec<String>,
    /// In place of our code, where a client library looks for another word.
    pub(crate) word: Option<&'static str>,
    /// It is no request of GraphQL at all.
    pub(crate) is_of_request: bool,
}

impl Deref for GraphQlError {
    type Target = Fault;

    fn deref(&self) -> &Fault {
        &self.0
    }
}

impl GraphQlError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> GraphQlError {
        GraphQlError::from(Problem::new(code, message))
    }

    pub(crate) fn at(mut self, pos: Pos) -> GraphQlError {
        self.0.locations.push(pos);
        self
    }

    pub(crate) fn within(mut self, path: &[String]) -> GraphQlError {
        self.0.path = path.to_vec();
        self
    }

    pub(crate) fn with_word(mut self, word: &'static str) -> GraphQlError {
        self.0.word = Some(word);
        self
    }

    pub(crate) fn of_request(mut self) -> GraphQlError {
        self.0.is_of_request = true;
        self
    }

    pub(crate) fn into_problem(self) -> Problem {
        self.0.problem
    }
}

impl From<Problem> for GraphQlError {
    fn from(problem: Problem) -> GraphQlError {
        GraphQlError(Box::new(Fault {
            problem,
            locations: Vec::new(),
            path: Vec::new(),
            word: None,
            is_of_request: false,
        }))
    }
}

impl From<ServerError> for GraphQlError {
    fn from(error: ServerError) -> GraphQlError {
        let problem = Problem::new(Code::BadRequest, error.message);
        let mut of = GraphQlError::from(problem);
        of.0.locations = error.locations;
        of
    }
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "<[Pos]>::is_empty")]
    locations: &'a [Pos],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    path: &'a [String],
    extensions: Extensions<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Extensions<'a> {
    code: String,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    details: &'a [String],
}

/// The body of an answer. `data`: a JSON value; `None`: nothing was executed.
pub(crate) fn body(data: Option<&[u8]>, errors: &[GraphQlError]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.map_or(0, <[u8]>::len) + 64);
    out.push(b'{');
    if !errors.is_empty() {
        out.extend_from_slice(b"\"errors\":");
        let sent: Vec<_> = errors.iter().map(sent).collect();
        serde_json::to_writer(&mut out, &sent).expect("errors are JSON");
    }
    if let Some(data) = data {
        out.extend_from_slice(if errors.is_empty() { b"\"data\":" } else { b",\"data\":" });
        out.extend_from_slice(data);
    }
    out.push(b'}');
    out
}

/// The errors of an answer as a list.
pub(crate) fn list(errors: &[GraphQlError]) -> String {
    let sent: Vec<_> = errors.iter().map(sent).collect();
    serde_json::to_string(&sent).expect("errors are JSON")
}

fn sent(error: &GraphQlError) -> ErrorObject<'_> {
    let Problem { message, details, .. } = &error.problem;
    let code = error.word.map_or_else(|| format!("{:?}", error.problem.code), str::to_owned);
    ErrorObject {
        message,
        locations: &error.locations,
        path: &error.path,
        extensions: Extensions { code, details },
    }
}
