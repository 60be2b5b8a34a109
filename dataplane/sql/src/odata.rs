//! The door for `GET`: a raw query string becomes a [`ReadRequest`], or a problem that says what to write instead.

mod filter;
mod lexer;
mod lists;
mod query_string;

use rowgate_core::problem::{Code, Problem};

use crate::request::ReadRequest;

pub(crate) use lexer::{is_bare_name, is_guid, is_number, like};
pub use query_string::next_page;

/// The longest `$filter`, in bytes after percent-decoding.
pub const MAX_FILTER_LEN: usize = 8 * 1024;
/// How deep `not` and parentheses may nest.
pub const MAX_DEPTH: usize = 32;

const OPTIONS: &str = "$select, $filter, $orderby, $first, $after and $count";

/// Reads the options of a collection or a row from the part of the URL after `?`, as it came over the wire.
///
/// Parameters without `$` are none of ours and are left alone, as OData says.
pub fn parse(query_string: &str) -> Result<ReadRequest, Problem> {
    let mut request = ReadRequest::default();
    let mut seen: Vec<String> = Vec::new();
    for parameter in query_string::parameters(query_string) {
        let (name, value) = parameter?;
        if !name.starts_with('$') {
            continue;
        }
        if seen.contains(&name) {
            return Err(Problem::new(Code::BadRequest, format!("{name} is given twice; give it once")));
        }
        match name.as_str() {
            "$select" => request.select = Some(lists::select(&value)?),
            "$filter" => request.filter = Some(filter::parse(&value)?),
            "$orderby" => request.orderby = lists::orderby(&value)?,
            "$first" => request.first = Some(first(&value)?),
            "$after" => request.after = Some(value),
            "$count" => request.count = count(&value)?,
            _ => return Err(unknown_option(&name)),
        }
        seen.push(name);
    }
    Ok(request)
}

fn first(value: &str) -> Result<i64, Problem> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let number = digits.bytes().all(|b| b.is_ascii_digit()).then(|| value.parse().ok()).flatten();
    number.ok_or_else(|| Problem::new(Code::BadRequest, "$first is not a number of rows; write it in digits"))
}

fn count(value: &str) -> Result<bool, Problem> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => {
            Err(Problem::new(Code::BadRequest, "$count is true or false; write $count=true, or leave it out"))
        }
    }
}

fn unknown_option(name: &str) -> Problem {
    let shown: String = name.chars().take(32).collect();
    let message = match name {
        "$expand" => format!("{shown} is not served yet; the options are {OPTIONS}"),
        _ => format!("there is no option {shown:?}; the options are {OPTIONS}"),
    };
    let problem = Problem::new(Code::BadRequest, message);
    match name.to_ascii_lowercase().as_str() {
        "$top" | "$limit" => problem.detail("$first says how many rows a page has"),
        "$skip" | "$skiptoken" | "$offset" => problem.detail("nextLink of an answer leads to the next page"),
        known @ ("$select" | "$filter" | "$orderby" | "$first" | "$after" | "$count") => {
            problem.detail(format!("options are written in lower case: {known}"))
        }
        _ => problem,
    }
}
