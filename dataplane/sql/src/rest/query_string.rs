//! The door for `GET`: a raw query string becomes a [`ReadRequest`], or a problem that says what to write instead.

mod expand;
mod lists;
mod parameters;
mod spelling;
mod strays;

use rowgate_core::problem::{Code, Problem};

use super::filter;
use crate::request::ReadRequest;
pub(crate) use lists::{orderby, quoted};
pub use parameters::{parameters, without_cursor};
pub(crate) use spelling::order as order_here;
pub(crate) use strays::refuse_strays;

const OPTIONS: &str = "$select, $filter, $orderby, $first, $after, $count and $expand";

/// Reads the options of a collection or a row from the part of the URL after `?`, as it came over the wire.
///
/// Parameters without `$` are none of ours and are left alone, as OData says, but for those that look like ones of ours:
/// who knows the fields refuses them ([`refuse_strays`]).
pub fn parse(query_string: &str) -> Result<ReadRequest, Problem> {
    let mut request = ReadRequest::default();
    let mut seen: Vec<String> = Vec::new();
    for parameter in parameters(query_string) {
        let (name, value) = parameter?;
        if !name.trim_start().starts_with('$') {
            request.others.push((name, value));
            continue;
        }
        if seen.contains(&name) {
            return Err(Problem::new(Code::BadRequest, format!("{name} is given twice; give it once")));
        }
        match name.as_str() {
            "$after" => request.after = Some(value),
            "$expand" => request.expand = expand::parse(&value)?,
            _ => option(&mut request, &name, &value)?,
        }
        seen.push(name);
    }
    Ok(request)
}

/// Reads an option that collections, relationships within them and exports take.
pub(crate) fn option(request: &mut ReadRequest, name: &str, value: &str) -> Result<(), Problem> {
    match name {
        "$select" => request.select = Some(lists::select(value)?),
        "$filter" => request.filter = Some(filter::parse(value)?),
        "$orderby" => request.orderby = orderby(value)?,
        "$first" => request.first = Some(first(value)?),
        "$count" => request.count = count(value)?,
        _ => return Err(unknown_option(name, value)),
    }
    Ok(())
}

/// Refuses any option, in whatever spelling, at an address that has none: the list of entities.
pub fn refuse_options(query_string: &str) -> Result<(), Problem> {
    for parameter in parameters(query_string) {
        let (name, _) = parameter?;
        if name.trim_start().starts_with('$') || spelling::meant(&name).is_some() {
            let shown = shown(&name);
            let what = format!(
                "the list of entities takes no options; leave {shown:?} out, or write it at the URL of an entity"
            );
            return Err(Problem::new(Code::BadRequest, what));
        }
    }
    Ok(())
}

/// As much of a name as is repeated to its sender.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(32).collect()
}

fn first(value: &str) -> Result<i64, Problem> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let number = digits.bytes().all(|b| b.is_ascii_digit()).then(|| value.parse().ok()).flatten();
    number.ok_or_else(|| {
        Problem::new(Code::BadRequest, "$first is not a number of rows; write it in digits: $first=100")
    })
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

fn unknown_option(name: &str, value: &str) -> Problem {
    let shown = shown(name.trim());
    let problem =
        Problem::new(Code::BadRequest, format!("there is no option {shown:?}; the options are {OPTIONS}"));
    let written = name.trim().to_ascii_lowercase();
    match written.as_str() {
        "$select" | "$filter" | "$orderby" | "$first" | "$after" | "$count" | "$expand" => {
            problem.detail(format!("options are written in lower case and without spaces: write {written}"))
        }
        _ => match spelling::meant(&written) {
            Some(meant) => problem.detail(spelling::advice(meant, &written, value, &|_| None)),
            None => problem,
        },
    }
}
