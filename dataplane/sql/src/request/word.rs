//! Which words are values, and which names: how a filter is written in its canonical form.

use super::Literal;

/// What ends a word, beside the end of the text.
pub(crate) const ENDS_WORD: [char; 8] = [' ', '\t', '\r', '\n', '(', ')', ',', '\''];

/// The value that a bare word is; `None` for a name.
pub(crate) fn literal(word: &str) -> Option<Literal> {
    Some(match word {
        "null" => Literal::Null,
        "true" => Literal::Bool(true),
        "false" => Literal::Bool(false),
        "INF" => Literal::Infinity { negative: false },
        "-INF" => Literal::Infinity { negative: true },
        "NaN" => Literal::NaN,
        _ if is_number(word) => Literal::Number(word.to_owned()),
        _ if is_guid(word) => Literal::Guid(word.to_owned()),
        _ if like(word, "dd:dd") || starts_like(word, "dd:dd:") => Literal::Time(word.to_owned()),
        _ if is_date(word) => Literal::Date(word.to_owned()),
        _ if word.split_once('T').is_some_and(|(date, _)| is_date(date)) => {
            Literal::Timestamp(word.to_owned())
        }
        _ => return None,
    })
}

/// Quotes of other languages, and brackets of JSON: no bare name begins with one, so that what was meant can be told.
pub(crate) const FOREIGN_QUOTES: [char; 6] = ['"', '`', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}'];
pub(crate) const BRACKETS: [char; 2] = ['{', '['];

/// Whether a field of this name can be written in a filter without quotes.
pub(crate) fn is_bare_name(name: &str) -> bool {
    let read = !name.is_empty() && !name.contains(ENDS_WORD) && !name.starts_with('-');
    let foreign = name.starts_with(FOREIGN_QUOTES) || name.starts_with(BRACKETS);
    read && !foreign && name != "not" && literal(name).is_none()
}

/// `-12`, `1.5`, `2e-3`: digits on both sides of a point.
pub(crate) fn is_number(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['-', '+']).unwrap_or(e)))
}

pub(crate) fn is_guid(text: &str) -> bool {
    like(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

fn is_date(text: &str) -> bool {
    ["dddd-dd-dd", "ddddd-dd-dd", "dddddd-dd-dd", "ddddddd-dd-dd"].iter().any(|pattern| like(text, pattern))
}

pub(crate) fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn starts_like(text: &str, pattern: &str) -> bool {
    text.get(..pattern.len()).is_some_and(|start| like(start, pattern))
}

/// `d` stands for a digit, `x` for a hexadecimal one, anything else for itself.
pub(crate) fn like(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, wanted)| match wanted {
            b'd' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit(),
            _ => byte == wanted,
        })
}
