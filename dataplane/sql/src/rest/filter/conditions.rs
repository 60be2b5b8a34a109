//! A condition as other products spell it, in the words of `$filter`. What is built here stands in messages only.

use crate::request;

/// A field that the caller may read, as a filter writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spelt<'a> {
    pub(crate) name: &'a str,
    /// Its constants stand in quotes.
    pub(crate) is_quoted: bool,
}

/// A longer piece of a request is not repeated to its sender.
pub(crate) const LONGEST: usize = 100;

impl Spelt<'_> {
    fn name(self) -> String {
        match request::is_bare_name(self.name) {
            true => self.name.to_owned(),
            false => quoted(self.name),
        }
    }

    fn constant(self, text: &str) -> String {
        let text: String = text.chars().take(LONGEST).collect();
        match !self.is_quoted && request::literal(&text).is_some() {
            true => text,
            false => quoted(&text),
        }
    }

    /// `eq.5`, `not.in.(1,2)`, `is.null`, as PostgREST has it; a value without an operator is one to be equal to.
    pub(crate) fn condition(self, value: &str) -> String {
        let value = value.trim_start_matches('=');
        let found = value.split_once('.').and_then(|(op, operand)| match op {
            "not" => {
                let (op, operand) = operand.split_once('.')?;
                self.negated(op, operand)
            }
            _ => self.compared(op, operand),
        });
        found.unwrap_or_else(|| self.compared("eq", value).unwrap_or_default())
    }

    fn negated(self, op: &str, operand: &str) -> Option<String> {
        let condition = self.compared(op, operand)?;
        Some(match condition.strip_suffix(" eq null") {
            Some(name) => format!("{name} ne null"),
            None => format!("not ({condition})"),
        })
    }

    /// `None` for an operator that no product has. The words are those of PostgREST, Hasura, Directus, Strapi and Django.
    pub(crate) fn compared(self, op: &str, value: &str) -> Option<String> {
        let name = self.name();
        let op = op.trim_start_matches(['_', '$']).to_ascii_lowercase();
        if let Some(op) = comparison(&op) {
            return Some(match value.to_ascii_lowercase().as_str() {
                "null" if matches!(op, "eq" | "ne") => format!("{name} {op} null"),
                _ => format!("{name} {op} {}", self.constant(value)),
            });
        }
        let call = |word: &str| format!("{word}({name},{})", quoted(value));
        Some(match op.as_str() {
            "is" => match value.to_ascii_lowercase().as_str() {
                "true" | "false" => format!("{name} eq {}", value.to_ascii_lowercase()),
                "not_null" => format!("{name} ne null"),
                _ => format!("{name} eq null"),
            },
            "null" | "isnull" | "is_null" => match value {
                "false" | "0" => format!("{name} ne null"),
                _ => format!("{name} eq null"),
            },
            "in" => format!("{name} in ({})", self.list(value)),
            "nin" | "notin" => format!("not ({name} in ({}))", self.list(value)),
            "like" => pattern(&name, value),
            "ilike" => pattern(&format!("tolower({name})"), &value.to_lowercase()),
            "contains" => call("contains"),
            "startswith" | "starts_with" => call("startswith"),
            "endswith" | "ends_with" => call("endswith"),
            "icontains" | "fts" | "plfts" | "phfts" | "wfts" | "match" | "imatch" => {
                let value = value.trim_start_matches('^').trim_end_matches('$').to_lowercase();
                format!("contains(tolower({name}),{})", quoted(&value))
            }
            // containment and overlap of arrays and ranges, of which only equality is served
            "cs" | "cd" | "ov" | "sl" | "sr" | "nxr" | "nxl" | "adj" => {
                format!("{name} eq {}", quoted(value))
            }
            "isdistinct" => format!("{name} ne {0} or {name} eq null", self.constant(value)),
            _ => return None,
        })
    }

    /// `(1,2,"a,b")`, with its parentheses or without.
    fn list(self, value: &str) -> String {
        let inner = value.trim_matches(['(', ')', '[', ']', '{', '}']);
        if LONGEST < inner.len() {
            return "...".to_owned();
        }
        let items = inner.split(',').map(|item| self.constant(item.trim().trim_matches('"')));
        items.collect::<Vec<_>>().join(",")
    }
}

/// The word for a comparison that is spelt otherwise elsewhere.
pub(crate) fn comparison(word: &str) -> Option<&'static str> {
    Some(match word {
        "=" | "==" | "===" | "eq" | "equals" | "equal" => "eq",
        "!=" | "<>" | "!==" | "ne" | "neq" => "ne",
        ">" | "gt" => "gt",
        ">=" | "=>" | "ge" | "gte" => "ge",
        "<" | "lt" => "lt",
        "<=" | "=<" | "le" | "lte" => "le",
        _ => return None,
    })
}

/// A pattern of LIKE, or of PostgREST, whose `*` is `%`, as the function that finds the same.
pub(crate) fn pattern(name: &str, pattern: &str) -> String {
    let wild = ['%', '*'];
    let text = quoted(pattern.trim_matches(wild));
    match (pattern.starts_with(wild), pattern.ends_with(wild)) {
        (false, true) => format!("startswith({name},{text})"),
        (true, false) => format!("endswith({name},{text})"),
        (true, true) => format!("contains({name},{text})"),
        (false, false) => format!("{name} eq {text}"),
    }
}

/// A text as a constant of a filter, as much of it as is repeated.
pub(crate) fn quoted(text: &str) -> String {
    request::quoted(&text.chars().take(LONGEST).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_postgrest_have_words_here() {
        let (id, name) =
            (Spelt { name: "id", is_quoted: false }, Spelt { name: "ID Number", is_quoted: true });
        for (field, value, wanted) in [
            (id, "eq.5", "id eq 5"),
            (id, "5", "id eq 5"),
            (id, "=5", "id eq 5"),
            (id, "5.5", "id eq 5.5"),
            (id, "neq.5", "id ne 5"),
            (id, "gte.5", "id ge 5"),
            (id, "not.lt.5", "not (id lt 5)"),
            (id, "is.null", "id eq null"),
            (id, "not.is.null", "id ne null"),
            (id, "is.not_null", "id ne null"),
            (id, "in.(1,2)", "id in (1,2)"),
            (id, "not.in.(1,2)", "not (id in (1,2))"),
            (id, "eq.x", "id eq 'x'"),
            (id, "isdistinct.5", "id ne 5 or id eq null"),
            (name, "5", "'ID Number' eq '5'"),
            (name, "eq.O'Brien", "'ID Number' eq 'O''Brien'"),
            (name, "in.(a,\"b\")", "'ID Number' in ('a','b')"),
            (name, "like.*a*", "contains('ID Number','a')"),
            (name, "ilike.A%", "startswith(tolower('ID Number'),'a')"),
            (name, "like.%a", "endswith('ID Number','a')"),
            (name, "like.a", "'ID Number' eq 'a'"),
            (name, "fts.A", "contains(tolower('ID Number'),'a')"),
            (name, "cs.{a}", "'ID Number' eq '{a}'"),
            (name, "a.b", "'ID Number' eq 'a.b'"),
        ] {
            assert_eq!(field.condition(value), wanted, "{value}");
        }
    }
}
