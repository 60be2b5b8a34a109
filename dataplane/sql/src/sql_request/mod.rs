//! What the SQL endpoint is asked: the body of its request, and the values of its parameters once PostgreSQL has said their types.

mod argument;

use rowgate_core::nearest::nearest;
use rowgate_core::problem::{Code, Problem};
use serde_json::value::RawValue;

use crate::request::{Input, fields};
use crate::rest::body;
use crate::user_select::{Given, Refusal, Rules, UserSelect, check, compares_paths};
pub use argument::{bind, encoding};

const EXAMPLE: &str =
    r#"send an object such as {"query": "select id from orders where id = @id", "parameters": {"id": 7}}"#;
const MEMBERS: [&str; 3] = ["query", "parameters", "explain"];

/// A SELECT that passed the checks, with what was given for its parameters.
#[derive(Debug, Clone)]
pub struct SqlRequest {
    pub select: UserSelect,
    /// The JSON of `$n` at n - 1, and the name of its parameter.
    pub arguments: Vec<Argument>,
    /// The plan is wanted, not the rows.
    pub explain: bool,
}

/// One value as it was sent.
#[derive(Debug, Clone)]
pub struct Argument {
    pub name: String,
    pub json: Box<RawValue>,
}

impl Argument {
    fn fits(&self, given: Given) -> Result<(), Problem> {
        let name = shown(&self.name);
        if let Some(max) = given.max_bytes
            && max < self.json.get().len()
        {
            let what = format!(
                "the value of the parameter {name:?} is longer than {max} bytes, and PostgreSQL would go through all of another value for each part of it; \
                 send a shorter one"
            );
            return Err(Problem::new(Code::InvalidValue, what));
        }
        // escapes of JSON may hide what a path is made of
        let compares_paths =
            || serde_json::from_str(self.json.get()).is_ok_and(|text: String| compares_paths(&text));
        if given.is_json_path && compares_paths() {
            let what = format!(
                "the jsonpath of the parameter {name:?} compares two paths, and PostgreSQL would go through all of the document for each part of it; write it in the query"
            );
            return Err(Problem::new(Code::InvalidValue, what));
        }
        Ok(())
    }
}

/// The body of `POST /api/ddl/sql`.
///
/// # Errors
/// `BadRequest` for a body of another form, `InvalidSql` for a query that is not allowed, or whose parameters are not those given.
pub fn parse(bytes: &[u8]) -> Result<SqlRequest, Problem> {
    let (mut query, mut parameters, mut explain) = (None, Vec::new(), false);
    for (name, value) in body::object(bytes, EXAMPLE)? {
        match (name.as_str(), value) {
            ("query", Input::Text(text)) => query = Some(text),
            ("query", _) => return Err(refused("query is not a text; write the SELECT in double quotes")),
            ("parameters" | "explain", Input::Null) => {}
            ("parameters", Input::Object(raw)) => parameters = given(raw)?,
            ("parameters", _) => {
                return Err(refused("parameters is not an object; write {\"id\": 7} for the parameter @id"));
            }
            ("explain", Input::Bool(wanted)) => explain = wanted,
            ("explain", _) => return Err(refused("explain is true or false, without quotes")),
            (name, _) => return Err(unknown_member(name)),
        }
    }
    let query = query.ok_or_else(|| refused(format!("query is missing; {EXAMPLE}")))?;
    of_query(&query, parameters, explain)
}

/// A query with the values of its parameters, under the rules of the SQL endpoint.
///
/// # Errors
/// `InvalidSql` for a query that is not allowed, or whose parameters are not those given.
pub fn of_query(text: &str, parameters: Vec<Argument>, explain: bool) -> Result<SqlRequest, Problem> {
    let select = check(text, Rules::SqlEndpoint).map_err(|refusal| of_refusal(&refusal))?;
    let arguments = matched(&select.parameters, parameters)?;
    for (argument, given) in arguments.iter().zip(&select.given) {
        argument.fits(*given)?;
    }
    Ok(SqlRequest { select, arguments, explain })
}

/// The members of `parameters`, in the order sent.
pub fn given(raw: &str) -> Result<Vec<Argument>, Problem> {
    let wrong = |_| refused("parameters is not valid JSON");
    let members = fields(raw).map_err(wrong)?;
    let argument = |(name, value): (String, Input<'_>)| {
        let json = RawValue::from_string(value.json().into_owned());
        Ok(Argument { name, json: json.map_err(|_| refused("parameters is not valid JSON"))? })
    };
    members.into_iter().map(argument).collect()
}

/// In the order of the query's own numbers; names are compared as SQL compares them, without case.
fn matched(names: &[String], mut given: Vec<Argument>) -> Result<Vec<Argument>, Problem> {
    let mut arguments = Vec::with_capacity(names.len());
    for name in names {
        let exact = given.iter().position(|it| it.name == *name);
        let at = exact.or_else(|| given.iter().position(|it| it.name.eq_ignore_ascii_case(name)));
        let Some(at) = at else {
            let shown = shown(name);
            let what = format!("the query has a parameter @{shown}, and parameters has no value for it");
            let problem = Problem::new(Code::InvalidSql, what);
            return Err(problem.detail(format!("add {shown:?} to parameters; null is a value, too")));
        };
        arguments.push(given.swap_remove(at));
    }
    match given.first() {
        None => Ok(arguments),
        Some(Argument { name, .. }) => {
            let shown = shown(name);
            let what = format!("parameters has a value for {shown:?}, and the query has no @{shown}");
            let problem = Problem::new(Code::InvalidSql, what);
            let near = nearest(name, names.iter().map(String::as_str));
            Err(near.map_or(problem.clone(), |near| problem.detail(format!("did you mean {near:?}?"))))
        }
    }
}

/// A query that is not allowed, and where in it the reason stands.
#[must_use]
pub fn of_refusal(refusal: &Refusal) -> Problem {
    Problem::new(Code::InvalidSql, refusal.to_string())
}

fn unknown_member(name: &str) -> Problem {
    let what = format!("the body has no member {:?}; its members are {}", shown(name), MEMBERS.join(", "));
    let problem = refused(what);
    match nearest(name, MEMBERS) {
        Some(near) => problem.detail(format!("did you mean {near:?}?")),
        None => problem,
    }
}

/// As much of a name as is repeated to its sender.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

fn refused(what: impl Into<String>) -> Problem {
    Problem::new(Code::BadRequest, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(body: &str) -> String {
        let problem = parse(body.as_bytes()).expect_err(body);
        format!("{:?}: {} {}", problem.code, problem.message, problem.details.join(" "))
    }

    #[test]
    fn parameters_are_sorted_by_their_numbers_and_compared_without_case() {
        let body = br#"{"query": "select @B, @a, @b", "parameters": {"a": [1, 2], "b": "x"}}"#;
        let request = parse(body).expect("a request");
        let shown: Vec<_> = request.arguments.iter().map(|it| (&*it.name, it.json.get())).collect();
        assert_eq!(shown, [("b", "\"x\""), ("a", "[1, 2]")]);
        assert!(!request.explain);
    }

    #[test]
    fn a_wrong_body_says_what_to_send() {
        for (body, expected) in [
            ("[]", "the body is not an object"),
            ("{}", "query is missing"),
            (r#"{"query": 1}"#, "query is not a text"),
            (r#"{"query": "select 1", "parameters": [1]}"#, "parameters is not an object"),
            (r#"{"query": "select 1", "paramters": {}}"#, "did you mean \"parameters\"?"),
            (r#"{"query": "select 1", "explain": 1}"#, "explain is true or false"),
            (r#"{"query": "select @id"}"#, "add \"id\" to parameters"),
            (r#"{"query": "select @id", "parameters": {"id": 1, "idd": 2}}"#, "did you mean \"id\"?"),
            (r#"{"query": "delete from orders"}"#, "InvalidSql: line 1"),
            (r#"{"query": "select top 5 * from orders"}"#, "write limit 10"),
        ] {
            let told = problem(body);
            assert!(told.contains(expected), "{body}: {told}");
        }
    }
}
