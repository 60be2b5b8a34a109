//! `$expand`: relationships by name, each with options of its own in parentheses, separated by `;`.

use rowgate_core::problem::{Code, Problem};

use super::{option, shown};
use crate::request::{Expand, ReadRequest};

/// How deep `$expand` may nest.
const MAX_EXPAND_DEPTH: usize = 8;
/// Relationships that one request may name.
const MAX_EXPANDED: usize = 50;

/// `customer($select=name),lines($filter=qty gt 5;$orderby=id desc;$first=3)`
pub(super) fn parse(value: &str) -> Result<Vec<Expand>, Problem> {
    let mut n_left = MAX_EXPANDED;
    items(value, MAX_EXPAND_DEPTH, &mut n_left)
}

fn items(value: &str, depth: usize, n_left: &mut usize) -> Result<Vec<Expand>, Problem> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(bad(format!("$expand nests deeper than {MAX_EXPAND_DEPTH} levels; ask for fewer")));
    };
    let mut items: Vec<Expand> = Vec::new();
    for item in split(value, ',')? {
        *n_left = n_left.checked_sub(1).ok_or_else(|| {
            bad(format!("$expand names more than {MAX_EXPANDED} relationships; name fewer"))
        })?;
        let (name, options) = match item.split_once('(') {
            None => (item, None),
            Some((name, rest)) => {
                let inside = rest.trim_end().strip_suffix(')');
                let inside = inside.ok_or_else(|| {
                    bad("in $expand only a comma may follow a closing parenthesis".to_owned())
                })?;
                (name, Some(inside))
            }
        };
        let name = name.trim();
        if name.is_empty() {
            return Err(bad(
                "$expand lacks the name of a relationship; write $expand=customer,lines".to_owned()
            ));
        }
        if items.iter().any(|item| item.name == name) {
            return Err(bad(format!("$expand names {:?} twice; name it once", shown(name))));
        }
        let request = match options {
            None => ReadRequest::default(),
            Some(options) => request(name, options, depth, n_left)?,
        };
        items.push(Expand { name: name.to_owned(), request });
    }
    Ok(items)
}

/// The options of one relationship.
fn request(name: &str, options: &str, depth: usize, n_left: &mut usize) -> Result<ReadRequest, Problem> {
    let here = |problem: Problem| problem.detail(format!("in $expand of {:?}", shown(name)));
    let mut request = ReadRequest::default();
    let mut seen: Vec<&str> = Vec::new();
    for parameter in split(options, ';')? {
        let (option_name, value) = parameter.split_once('=').ok_or_else(|| {
            here(bad("an option has no value; write $select=name and separate options by ;".to_owned()))
        })?;
        let option_name = option_name.trim();
        if seen.contains(&option_name) {
            return Err(here(bad(format!("{option_name} is given twice; give it once"))));
        }
        match option_name {
            "$expand" => request.expand = items(value, depth, n_left)?,
            "$after" => {
                let what = "$after is not an option of $expand; page through the other entity with $filter";
                return Err(here(bad(what.to_owned())));
            }
            _ => option(&mut request, option_name, value).map_err(here)?,
        }
        seen.push(option_name);
    }
    Ok(request)
}

/// The parts between separators that stand outside of parentheses and quotes.
fn split(text: &str, separator: char) -> Result<Vec<&str>, Problem> {
    let (mut depth, mut is_quoted, mut start) = (0_usize, false, 0);
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' => {
                depth = depth.checked_sub(1).ok_or_else(|| {
                    bad("$expand has a closing parenthesis without its opening one".to_owned())
                })?;
            }
            c if c == separator && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    if is_quoted {
        return Err(bad("a quoted text in $expand has no closing quote".to_owned()));
    }
    if 0 < depth {
        return Err(bad("$expand has an opening parenthesis without its closing one".to_owned()));
    }
    parts.push(&text[start..]);
    Ok(parts)
}

fn bad(what: String) -> Problem {
    Problem::new(Code::BadRequest, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relationships_have_options_of_their_own() {
        let read = parse(
            "customer($select=name,city), lines($filter=contains(name,'a;b),(');$orderby=qty desc;$first=3;$count=true;$expand=product)",
        )
        .expect("well-formed");
        let [customer, lines] = &read[..] else { panic!("{read:?}") };
        assert_eq!((&*customer.name, customer.request.select.as_ref().map(Vec::len)), ("customer", Some(2)));
        assert_eq!((&*lines.name, lines.request.first, lines.request.count), ("lines", Some(3), true));
        assert!(lines.request.filter.is_some() && lines.request.orderby[0].descending);
        assert_eq!(lines.request.expand[0].name, "product");
    }

    #[test]
    fn what_is_no_list_of_relationships_is_refused() {
        let deep = format!("{}a{}", "a($expand=".repeat(8), ")".repeat(8));
        let many =
            vec!["a"; 60].iter().enumerate().map(|(i, a)| format!("{a}{i}")).collect::<Vec<_>>().join(",");
        for (wrong, words) in [
            ("", "lacks the name"),
            ("a,", "lacks the name"),
            ("a,a", "twice"),
            ("a(", "without its closing"),
            ("a)", "without its opening"),
            ("a($select=b)c", "only a comma"),
            ("a($select)", "no value"),
            ("a($first=1;$first=2)", "given twice"),
            ("a($after=x)", "not an option of $expand"),
            ("a($filter=b eq 'c)", "no closing quote"),
            ("a($first=x)", "digits"),
            ("a($top=5)", "no option"),
            (&deep, "deeper than 8"),
            (&many, "more than 50"),
        ] {
            let problem = parse(wrong).expect_err(wrong);
            assert!(problem.message.contains(words), "{wrong}: {problem:?}");
        }
    }
}
