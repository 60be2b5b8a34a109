//! Options as other products spell them: PostgREST, OData of all versions, Hasura, Data API builder, JSON:API and what
//! most frameworks have.

use serde_json::Value;

use crate::request::is_bare_name;
use crate::rest::filter::{self, Spelt};

/// A longer value is not read for what may have been meant.
const LONGEST_VALUE: usize = 200;

/// What a parameter is for, wherever it has its name from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meant {
    Select,
    Filter,
    /// `and`, `or`, `not.and`: conditions in PostgREST's own brackets. Whether `or` joins them, and whether `not` precedes.
    Logic(bool, bool),
    OrderBy,
    First,
    After,
    Before,
    Count,
    Expand,
    Distinct,
    Search,
    Apply,
    OnConflict,
    Format,
}

/// `None`: the name is no option in any spelling that is known.
pub(super) fn meant(name: &str) -> Option<Meant> {
    let whole: String =
        name.trim().chars().filter(|c| !"$_- ".contains(*c)).collect::<String>().to_ascii_lowercase();
    let base = whole.split('[').next().unwrap_or_default();
    Some(match base {
        "select" | "fields" | "columns" | "projection" => Meant::Select,
        "filter" | "filters" | "where" | "having" => Meant::Filter,
        "and" => Meant::Logic(false, false),
        "or" => Meant::Logic(true, false),
        "not.and" => Meant::Logic(false, true),
        "not.or" => Meant::Logic(true, true),
        "order" | "orderby" | "sort" | "sortby" | "ordering" => Meant::OrderBy,
        "first" | "limit" | "top" | "take" | "size" | "pagesize" | "perpage" | "maxpagesize"
        | "maxresults" => Meant::First,
        "page" => match &whole[base.len()..] {
            "[size]" | "[limit]" => Meant::First,
            "[before]" => Meant::Before,
            _ => Meant::After,
        },
        "after" | "cursor" | "offset" | "skip" | "pagetoken" | "skiptoken" | "startafter"
        | "startingafter" => Meant::After,
        "before" | "last" | "endingbefore" => Meant::Before,
        "count" | "inlinecount" | "includecount" | "totalcount" | "includetotal" => Meant::Count,
        "expand" | "include" | "embed" | "populate" => Meant::Expand,
        "distinct" | "distincton" => Meant::Distinct,
        "search" | "q" => Meant::Search,
        "apply" | "groupby" | "aggregate" | "compute" => Meant::Apply,
        "onconflict" => Meant::OnConflict,
        // Without its $ it may be anybody's, and changes nothing here.
        "format" if name.starts_with('$') => Meant::Format,
        _ => return None,
    })
}

/// What to write, as part of a sentence. `field` finds the fields that the caller may read; before those are known it finds
/// none.
pub(super) fn advice<'a>(
    meant: Meant,
    name: &str,
    value: &str,
    field: &dyn Fn(&str) -> Option<Spelt<'a>>,
) -> String {
    let value = value.trim();
    match meant {
        Meant::Select => match is_list(value) {
            true => format!("write $select={}", value.replace(' ', "")),
            false => "write $select=name,name with names of fields".to_owned(),
        },
        Meant::Filter => match condition(name, value, field) {
            Some(condition) => format!("write $filter={condition}"),
            None => "write a condition such as $filter=id eq 5".to_owned(),
        },
        Meant::Logic(is_or, is_not) => match logic(value, is_or, is_not, field) {
            Some(condition) => format!("write $filter={condition}"),
            None => format!("write $filter=id eq 1 {} id eq 2", if is_or { "or" } else { "and" }),
        },
        Meant::OrderBy => match order(value) {
            Some(order) => format!("write $orderby={order}"),
            None => "write $orderby=name desc".to_owned(),
        },
        Meant::First => match value.parse::<u32>() {
            Ok(n @ 1..) => format!("write $first={n}"),
            _ => "write $first=100 for pages of 100 rows".to_owned(),
        },
        Meant::After if is_cursor(value) => format!("write $after={value}"),
        Meant::After => {
            "rows cannot be skipped by number: write $first=100 and follow nextLink of each answer".to_owned()
        }
        Meant::Before => {
            "pages can only be read forwards: write $orderby=name desc to reverse the order".to_owned()
        }
        Meant::Count => "write $count=true".to_owned(),
        Meant::Expand => match is_list(value) {
            true => format!("write $expand={}", value.replace(' ', "")),
            false => "write $expand=name,name with names of relationships".to_owned(),
        },
        Meant::Distinct => match is_list(value) {
            true => format!("duplicate rows are not removed: write $select={0}&$orderby={0}", value.replace(' ', "")),
            false => "duplicate rows are not removed: write $select=name&$orderby=name".to_owned(),
        },
        Meant::Search => "there is no search over all fields: write $filter=contains(name,'x')".to_owned(),
        Meant::Apply => {
            "grouping and aggregation are not served yet: read the rows with $filter and aggregate them in the client, or call a function with POST".to_owned()
        }
        Meant::OnConflict => {
            "send PATCH or PUT to the row's URL, /{entity}/{key field}/{value}, which changes or creates the row".to_owned()
        }
        Meant::Format => "answers are JSON: leave it out".to_owned(),
    }
}

fn is_list(value: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | ',' | ' ' | '*');
    !value.is_empty() && value.len() <= LONGEST_VALUE && value.chars().all(is_plain)
}

/// Longer than any number of rows and made of the letters of a cursor.
fn is_cursor(value: &str) -> bool {
    20 <= value.len()
        && value.len() <= LONGEST_VALUE
        && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// `$filter` of what `filter`, `filter[id]`, `filter[id][gt]` or `where` says, where that is a condition here already,
/// one of JSON, or names a field in brackets.
fn condition<'a>(name: &str, value: &str, field: &dyn Fn(&str) -> Option<Spelt<'a>>) -> Option<String> {
    let mut parts = name.split('[').skip(1).map(|part| part.trim_end_matches(']'));
    if let Some(found) = parts.next().and_then(field) {
        return match parts.next() {
            Some(op) => found.compared(op, value),
            None => Some(found.condition(value)),
        };
    }
    if value.starts_with('{') {
        let Ok(Value::Object(fields)) = serde_json::from_str(value) else { return None };
        let mut all = Vec::new();
        for (name, inner) in &fields {
            let found = field(name)?;
            match inner {
                Value::Object(operators) => {
                    for (op, value) in operators {
                        all.push(found.compared(op, &text(value))?);
                    }
                }
                value => all.push(found.compared("eq", &text(value))?),
            }
        }
        return (!all.is_empty()).then(|| all.join(" and "));
    }
    (value.len() <= LONGEST_VALUE && filter::parse(value).is_ok()).then(|| value.to_owned())
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// `(id.eq.5,status.eq.open)`.
fn logic<'a>(
    value: &str,
    is_or: bool,
    is_not: bool,
    field: &dyn Fn(&str) -> Option<Spelt<'a>>,
) -> Option<String> {
    let inner = value.strip_prefix('(')?.strip_suffix(')')?;
    // A list, or a group within: too much for a hint.
    if inner.contains('(') || LONGEST_VALUE < inner.len() {
        return None;
    }
    let each = inner.split(',').map(|part| {
        let (name, condition) = part.split_once('.')?;
        Some(field(name)?.condition(condition))
    });
    let each: Vec<String> = each.collect::<Option<_>>()?;
    let joined = each.join(if is_or { " or " } else { " and " });
    Some(if is_not { format!("not ({joined})") } else { joined })
}

/// `$orderby` of `id.desc.nullslast,name`, `-id`, `id:desc`, `id DESC`, `id,desc` or `{"id":"desc"}`.
pub(crate) fn order(value: &str) -> Option<String> {
    if LONGEST_VALUE < value.len() {
        return None;
    }
    let plain: String = value.chars().filter(|c| !"{}\"[]".contains(*c)).collect();
    let mut terms: Vec<(String, bool)> = Vec::new();
    for item in plain.split(',') {
        let mut words = item.split(['.', ':', ' ']).filter(|word| !word.is_empty());
        let first = words.next()?;
        let (name, mut descending) = match first.strip_prefix('-') {
            Some(name) => (name, true),
            None => (first, false),
        };
        let mut rest: Vec<&str> = words.collect();
        match direction(name) {
            // A direction behind a comma belongs to the field before.
            Some(downwards) if rest.is_empty() && !terms.is_empty() => {
                terms.last_mut()?.1 = downwards;
                continue;
            }
            _ => {}
        }
        if let Some(downwards) = rest.first().and_then(|word| direction(word)) {
            descending = downwards;
            rest.remove(0);
        }
        let is_nulls = |word: &&str| {
            let word = word.to_ascii_lowercase();
            ["nulls", "first", "last", "nullsfirst", "nullslast"].contains(&word.as_str())
        };
        if !rest.iter().all(is_nulls) || !is_bare_name(name) || name.contains(['*', '=']) {
            return None;
        }
        terms.push((name.to_owned(), descending));
    }
    let terms = terms.into_iter().map(|(name, descending)| name + if descending { " desc" } else { "" });
    Some(terms.collect::<Vec<_>>().join(","))
}

fn direction(word: &str) -> Option<bool> {
    let word = word.to_ascii_lowercase();
    match word.strip_suffix("_nulls_last").or_else(|| word.strip_suffix("_nulls_first")).unwrap_or(&word) {
        "asc" | "ascending" => Some(false),
        "desc" | "descending" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_other_products_have_words_here() {
        for (value, wanted) in [
            ("id", Some("id")),
            ("id.desc", Some("id desc")),
            ("id.desc.nullslast,name.asc", Some("id desc,name")),
            ("-id,name", Some("id desc,name")),
            ("id:desc", Some("id desc")),
            ("id,desc", Some("id desc")),
            ("id DESC, name ASC", Some("id desc,name")),
            ("id desc nulls last", Some("id desc")),
            ("{\"id\":\"desc_nulls_last\"}", Some("id desc")),
            ("id sideways", None),
            ("", None),
        ] {
            assert_eq!(order(value).as_deref(), wanted, "{value}");
        }
    }
}
