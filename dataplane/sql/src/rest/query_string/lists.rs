//! `$select` and `$orderby`: lists of names, quoted where a name holds what would end it.

use rowgate_core::problem::{Code, Problem};

use super::spelling;
use crate::request::OrderBy;

/// `a,b`, `ID Number`, `'ID Number'`, `*`.
pub(crate) fn select(value: &str) -> Result<Vec<String>, Problem> {
    items(value, Code::BadRequest, "$select")?
        .into_iter()
        .map(|item| match item {
            Item { name, quoted: true, rest } if rest.trim().is_empty() => Ok(name),
            Item { name, quoted: false, rest } => Ok(format!("{name}{rest}").trim_end().to_owned()),
            _ => Err(Problem::new(Code::BadRequest, "$select is a list of field names separated by commas")),
        })
        .collect()
}

/// `a desc,b asc,'ID Number'`.
pub(crate) fn orderby(value: &str) -> Result<Vec<OrderBy>, Problem> {
    items(value, Code::InvalidOrderBy, "$orderby")?
        .into_iter()
        .map(|Item { name, rest, .. }| match rest.trim() {
            "" | "asc" => Ok(OrderBy { name, descending: false }),
            "desc" => Ok(OrderBy { name, descending: true }),
            rest => Err(wrong_direction(value, rest)),
        })
        .collect()
}

/// `rest`: what follows a name of `value`.
fn wrong_direction(value: &str, rest: &str) -> Problem {
    let lower = rest.to_ascii_lowercase();
    let order = spelling::order(value);
    let why = match &order {
        Some(_) if lower.contains("nulls") => {
            "$orderby has no option for the position of NULL, which comes last in ascending and first in descending order"
        }
        Some(_) => "asc and desc are written in lower case, after a space",
        None => "only asc or desc may follow a field in $orderby; put a name with spaces in single quotes",
    };
    let problem = |what: String| Problem::new(Code::InvalidOrderBy, what);
    match order {
        Some(order) => problem(format!("{why}: write $orderby={order}")),
        None => problem(why.to_owned()),
    }
}

struct Item<'a> {
    name: String,
    quoted: bool,
    /// What follows the name, up to the comma.
    rest: &'a str,
}

fn items<'a>(value: &'a str, code: Code, option: &str) -> Result<Vec<Item<'a>>, Problem> {
    let mut items = Vec::new();
    let mut text = value;
    loop {
        text = text.trim_start();
        let (name, quoted, tail) = match text.strip_prefix('\'') {
            Some(inside) => {
                let (name, tail) = quoted(inside).ok_or_else(|| {
                    Problem::new(code, format!("a quoted name in {option} has no closing quote"))
                })?;
                (name, true, tail)
            }
            None => {
                let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
                (text[..end].to_owned(), false, &text[end..])
            }
        };
        if name.is_empty() {
            return Err(Problem::new(code, format!("{option} lacks a field name; write name,name")));
        }
        let (rest, next) = match tail.split_once(',') {
            Some((rest, next)) => (rest, Some(next)),
            None => (tail, None),
        };
        items.push(Item { name, quoted, rest });
        match next {
            Some(next) => text = next,
            None => return Ok(items),
        }
    }
}

/// The text up to the closing quote, with `''` for a quote, and what comes after it.
pub(crate) fn quoted(inside: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut rest = inside;
    loop {
        let (part, tail) = rest.split_once('\'')?;
        text.push_str(part);
        match tail.strip_prefix('\'') {
            Some(tail) => {
                text.push('\'');
                rest = tail;
            }
            None => return Some((text, tail)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_bare_or_quoted() {
        let read = |value: &str| select(value).map(|names| names.join("|")).map_err(|problem| problem.code);
        for (value, names) in [
            ("a,b", "a|b"),
            (" a , b ", "a|b"),
            ("ID Number,b", "ID Number|b"),
            ("'ID Number','it''s, well'", "ID Number|it's, well"),
            ("*", "*"),
        ] {
            assert_eq!(read(value).as_deref(), Ok(names), "{value}");
        }
        for wrong in ["", " ", ",", "a,", ",a", "'a", "'a' b", "''"] {
            assert_eq!(read(wrong), Err(Code::BadRequest), "{wrong}");
        }
    }

    #[test]
    fn order_terms_have_a_direction() {
        let read = |value: &str| {
            let show = |o: &OrderBy| format!("{}{}", o.name, if o.descending { "-" } else { "+" });
            orderby(value).map(|o| o.iter().map(show).collect::<String>()).map_err(|problem| problem.code)
        };
        for (value, terms) in
            [("a", "a+"), ("a desc, b asc ,c", "a-b+c+"), ("'ID Number' desc", "ID Number-")]
        {
            assert_eq!(read(value).as_deref(), Ok(terms), "{value}");
        }
        for wrong in ["", "a,", "a down", "a DESC", "ID Number", "a desc nulls last", "'a"] {
            assert_eq!(read(wrong), Err(Code::InvalidOrderBy), "{wrong}");
        }
    }
}
