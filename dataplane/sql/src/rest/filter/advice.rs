//! What to write in a filter instead of a word that other languages have in its place.

use super::conditions::{LONGEST, Spelt, comparison, pattern, quoted};
use super::lexer::{self, Token};
use crate::request::{self, FOREIGN_QUOTES};

/// A value in the quotes of another language, or JSON, with which `text` begins.
pub(super) fn foreign(text: &str) -> String {
    if text.starts_with(request::BRACKETS) {
        return "$filter is not JSON; write a condition such as id eq 5, and several with and or or between them"
            .to_owned();
    }
    let mut chars = text.chars();
    chars.next();
    let inner = chars.as_str().split(FOREIGN_QUOTES).next().unwrap_or_default();
    format!("put text in single quotes: write {}", quoted(inner))
}

/// Where an operator is expected: what may have been meant by the word at `start`. The token before it begins at `before`.
pub(super) fn instead(text: &str, before: usize, start: usize) -> Option<String> {
    let (Token::Word(word), rest) = lexer::token(&text[start..]) else { return None };
    let previous = &text[before..start];
    if let Some(value) = previous.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')) {
        // Nothing stands between the quote and the word: it was no end.
        let tail = text[start..].split('\'').next().unwrap_or_default();
        let value = format!("{}'{tail}", value.trim_end_matches('\\'));
        let value = value.replace("''", "'");
        return Some(match value.len() <= LONGEST {
            true => format!("a quote inside text is written twice: write {}", quoted(&value)),
            false => "a quote inside text is written twice: ''".to_owned(),
        });
    }
    let previous = previous.trim_end();
    if is_offset(word) && matches!(request::literal(previous), Some(literal) if literal.is_clock()) {
        return Some(format!("an unescaped + in a URL means a space: write {previous}%2B{word}"));
    }
    if previous.ends_with(['e', 'E']) && request::is_number(&format!("{previous}{word}")) {
        return Some(format!("an unescaped + in a URL means a space: write {previous}%2B{word}"));
    }
    if previous.eq_ignore_ascii_case("not") {
        return Some("operators are written in lower case: write not".to_owned());
    }
    if OPERATORS.contains(&word) {
        return None;
    }
    let end = word.find(|c| !SYMBOLS.contains(c)).filter(|end| 0 < *end).unwrap_or(word.len());
    let (symbol, attached) = word.split_at(end);
    let rest = if attached.is_empty() { rest } else { &text[start + end..] };
    let (right, after) = raw(rest);
    if LONGEST < previous.len() + right.len() {
        return None;
    }
    let better = better(previous, symbol, right, after)?;
    Some(format!("{symbol:?} is not an operator: write {better}"))
}

/// Spelt well, and in the wrong place.
const OPERATORS: [&str; 14] =
    ["eq", "ne", "gt", "ge", "lt", "le", "in", "and", "or", "add", "sub", "mul", "div", "mod"];

const SYMBOLS: &str = "=!<>&|~*/%+";

fn better(left: &str, word: &str, right: &str, after: &str) -> Option<String> {
    let is_term = !left.is_empty() && !left.ends_with([')', '(', ',']);
    let spelt = |operator: &str| match is_term && !right.is_empty() {
        true => format!("{left} {operator} {}", constant(right)),
        false => operator.to_owned(),
    };
    let left = if is_term { left } else { "name" };
    let lower = word.trim_start_matches('_').to_ascii_lowercase();
    if let Some(operator) = comparison(&lower) {
        return Some(spelt(operator));
    }
    let inner = constant(right);
    let inner = inner.trim_matches('\'');
    Some(match lower.as_str() {
        "&&" | "&" | "and" => "and".to_owned(),
        "||" | "|" | "or" => "or".to_owned(),
        "*" | "mul" => spelt("mul"),
        "/" | "div" | "divby" => spelt("div"),
        "%" | "mod" => spelt("mod"),
        "+" | "add" | "plus" => spelt("add"),
        "minus" | "sub" | "-" => spelt("sub"),
        "is" | "isnull" => match (lower.as_str(), right.to_ascii_lowercase().as_str()) {
            (_, "not") | ("isnull", "false") => format!("{left} ne null"),
            ("is", "true" | "false") => spelt("eq"),
            _ => format!("{left} eq null"),
        },
        "like" => pattern(left, inner),
        "ilike" => pattern(&format!("tolower({left})"), &inner.to_lowercase()),
        "~" | "~*" | "matches" | "regexp" | "contains" | "has" if is_text(right) => {
            format!("contains({left},{})", quoted(inner))
        }
        "has" => spelt("eq"),
        "startswith" | "endswith" => format!("{lower}({left},{})", quoted(inner)),
        "in" => format!("{left} in {}", list(right, after)),
        "nin" | "notin" => format!("not ({left} in {})", list(right, after)),
        "between" => {
            let (_, after) = raw(after);
            format!("{left} ge {} and {left} le {}", constant(right), constant(raw(after).0))
        }
        "not" => {
            let (operand, after) = raw(after);
            match right.to_ascii_lowercase().as_str() {
                "in" => format!("not ({left} in {})", list(operand, after)),
                "like" => format!("not {}", pattern(left, operand.trim_matches('\''))),
                _ => format!("not ({left} eq ...), with not before the condition"),
            }
        }
        _ => return None,
    })
}

/// The text of the next token, and what follows.
fn raw(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (token, mut rest) = lexer::token(text);
    // A constant with its type before the quote is one.
    if matches!(token, Token::Word(_)) && rest.starts_with('\'') {
        rest = lexer::token(rest).1;
    }
    (&text[..text.len() - rest.len()], rest)
}

/// A list whose parenthesis is the token `open`.
fn list(open: &str, after: &str) -> String {
    match (open, after.split_once(')')) {
        ("(", Some((items, _))) if items.len() <= LONGEST => format!("({items})"),
        _ => "(1,2)".to_owned(),
    }
}

/// A value in the spelling of this language.
fn constant(text: &str) -> String {
    match text.to_ascii_lowercase().as_str() {
        lower @ ("null" | "true" | "false") => lower.to_owned(),
        _ if text.starts_with(FOREIGN_QUOTES) => quoted(text.trim_matches(FOREIGN_QUOTES)),
        _ => text.to_owned(),
    }
}

fn is_text(token: &str) -> bool {
    token.starts_with('\'') || token.starts_with(FOREIGN_QUOTES)
}

/// What stands behind the plus of a time: `02:00`, `0200`, `02`.
fn is_offset(word: &str) -> bool {
    ["dd:dd", "dddd", "dd"].iter().any(|pattern| request::like(word, pattern))
}

/// What to write instead of a function that other languages have.
pub(super) fn on_function(name: &str) -> Option<String> {
    let shown = crate::rest::query_string::shown(name);
    let better = match name.to_ascii_lowercase().as_str() {
        "any" | "all" => {
            return Some(format!(
                "{name} follows the name of a relationship: write lines/{name}(l: l/field eq 1)"
            ));
        }
        "matchespattern" | "regexp" | "regex" | "like" | "ilike" | "substringof" | "icontains" => {
            "write contains(name,'x'), startswith(name,'x') or endswith(name,'x'), with tolower(name) where case does not matter"
        }
        "cast" | "isof" | "convert" => {
            "write the constant alone; it takes the type of the field that it is compared with"
        }
        "now" | "current_timestamp" | "mindatetime" | "maxdatetime" | "getdate" => {
            "write the time itself, such as 2024-01-31T10:00:00Z"
        }
        "lower" | "lcase" => "write tolower(name)",
        "upper" | "ucase" => "write toupper(name)",
        "len" | "char_length" => "write length(name)",
        "ceil" => "write ceiling(number)",
        "replace" | "coalesce" | "isnull" | "ifnull" | "nullif" => {
            "write conditions such as name eq null or name eq 'x'"
        }
        "not" => "operators are written in lower case: write not",
        "and" | "or" => "write it between two conditions: id eq 1 or id eq 2",
        "eq" | "ne" | "gt" | "ge" | "lt" | "le" | "in" => {
            "write the operator after its field: id eq 5, id in (1,2)"
        }
        _ => return None,
    };
    Some(format!("there is no function {shown:?}; {better}"))
}

/// What may have been meant by a word that is the name of no field. `field` finds those that the caller may read.
pub(crate) fn on_name<'a>(name: &str, field: &dyn Fn(&str) -> Option<Spelt<'a>>) -> Option<String> {
    if LONGEST < name.len() {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    if ["null", "true", "false"].contains(&lower.as_str()) {
        return Some(format!("constants are written in lower case: write {lower}"));
    }
    if ["none", "nil", "undefined"].contains(&lower.as_str()) {
        return Some("write null".to_owned());
    }
    let unsigned = name.strip_prefix('-').unwrap_or(name);
    if unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        let number = name.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        return match request::is_number(number) {
            true => Some(format!("numbers have no suffix: write {number}")),
            false => None,
        };
    }
    if let Some(found) = name.strip_prefix('!').and_then(field) {
        return Some(format!("write not {}", found.name));
    }
    if let Some(at) = name.find(['=', '!', '<', '>']) {
        let (left, rest) = name.split_at(at);
        let end = rest.find(|c| !"=!<>".contains(c)).unwrap_or(rest.len());
        let (symbol, value) = rest.split_at(end);
        let value = value.trim_matches(FOREIGN_QUOTES);
        let condition = field(left)?.compared(symbol, value).filter(|_| !value.is_empty());
        return Some(format!(
            "{symbol:?} is not an operator: write {}",
            condition.unwrap_or_else(|| comparison(symbol).unwrap_or("eq").to_owned())
        ));
    }
    let (left, condition) = name.split_once('.')?;
    Some(format!("write {}", field(left)?.condition(condition)))
}
