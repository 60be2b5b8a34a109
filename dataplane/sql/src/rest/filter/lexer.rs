//! Tokens of a filter, and which words are values.

use crate::request::{self, ENDS_WORD, Literal, digits, literal};
use crate::rest::query_string;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Open,
    Close,
    Comma,
    Quoted(String),
    /// A quote that is never closed.
    Unclosed,
    /// Everything up to white space, a parenthesis, a comma or a quote.
    Word(&'a str),
    End,
}

/// The first token of `text` and what follows it.
pub(super) fn token(text: &str) -> (Token<'_>, &str) {
    let text = text.trim_start_matches([' ', '\t', '\r', '\n']);
    let Some(first) = text.chars().next() else { return (Token::End, text) };
    match first {
        '(' => (Token::Open, &text[1..]),
        ')' => (Token::Close, &text[1..]),
        ',' => (Token::Comma, &text[1..]),
        '\'' => match query_string::quoted(&text[1..]) {
            Some((value, rest)) => (Token::Quoted(value), rest),
            None => (Token::Unclosed, ""),
        },
        _ => {
            let end = text.find(ENDS_WORD).unwrap_or(text.len());
            (Token::Word(&text[..end]), &text[end..])
        }
    }
}

/// The value that a word with a quoted text right behind it is, as OData writes constants of some types; those of its
/// versions 2 and 3 are read too. `Err` says what to write instead.
pub(super) fn prefixed(word: &str, text: String) -> Result<Literal, String> {
    let plain = match word {
        "duration" if is_duration(&text) => return Ok(Literal::Duration(text)),
        "duration" => return Err("write a duration as duration'P1DT2H3M4.5S'".to_owned()),
        "binary" => return Ok(Literal::Binary(text)),
        "guid" | "datetime" | "datetimeoffset" | "date" | "timeofday" => literal(&text),
        _ if is_qualified(word) => return Ok(Literal::Enum { ty: word.to_owned(), label: text }),
        _ => {
            return Err(format!(
                "write the text without {word:?} before its quote: {}",
                request::quoted(&text)
            ));
        }
    };
    let is_meant = |literal: &Literal| match word {
        "guid" => matches!(literal, Literal::Guid(_)),
        "timeofday" => matches!(literal, Literal::Time(_)),
        _ => matches!(literal, Literal::Date(_) | Literal::Timestamp(_)),
    };
    plain.filter(is_meant).ok_or_else(|| match word {
        "guid" => "write a uuid as 3f2504e0-4f89-11d3-9a0c-0305e82c3301".to_owned(),
        "timeofday" => "write a time as 10:00:00".to_owned(),
        _ => "write a date as 2024-01-31 and a timestamp as 2024-01-31T10:00:00Z".to_owned(),
    })
}

/// `P1DT2H3M4.5S` with at least one part, or with a minus sign before it. PostgreSQL reads no more than 15 digits of a part.
fn is_duration(text: &str) -> bool {
    let Some(parts) = text.strip_prefix('-').unwrap_or(text).strip_prefix('P') else { return false };
    let (days, times) = match parts.split_once('T') {
        Some((_, "")) => return false,
        Some((days, times)) => (days, times),
        None => (parts, ""),
    };
    let are_parts = |mut text: &str, units: &str| {
        for unit in units.chars() {
            if let Some((number, rest)) = text.split_once(unit) {
                let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
                if !digits(whole)
                    || !digits(fraction)
                    || (unit != 'S' && number.contains('.'))
                    || 15 < whole.len()
                {
                    return false;
                }
                text = rest;
            }
        }
        text.is_empty()
    };
    !parts.is_empty() && are_parts(days, "D") && are_parts(times, "HMS")
}

/// A name with a point in it, as the type of an enum has.
fn is_qualified(word: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    word.contains('.') && word.split('.').all(is_name)
}
