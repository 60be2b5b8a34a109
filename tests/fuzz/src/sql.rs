//! SQL of the compiler holds words of ours, names of the catalog and places of binds, and nothing else.

use rowgate_sql::compile::CompiledRead;

use crate::tenant;

const WORDS: &str = " select from where order by limit desc and or not in is null true false distinct collate \
    extract year month day hour minute second nullif pg_catalog t int4 text date time \
    strpos starts_with reverse lower upper btrim char_length substr round floor ceil timezone to_json ";
/// String constants, as they stand between their quotes.
const CONSTANTS: [&str; 4] = [" \\t\\n\\x0b\\f\\r", "infinity", "-infinity", "UTC"];

/// Panics where anything else stands in the text.
pub(crate) fn check(compiled: &CompiledRead) {
    let text = compiled.sql.as_str();
    for stray in ["--", "/*", ";", "\\\\", "\0"] {
        assert!(!text.contains(stray), "{stray:?} in {text}");
    }
    let mut n_binds = 0;
    let mut before = "";
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, tail) = match first {
            '"' | '\'' => quoted(rest, first),
            '$' => while_in(rest, |c| c == '$' || c.is_ascii_digit()),
            'a'..='z' | 'E' | '0'..='9' => while_in(rest, |c| c.is_ascii_alphanumeric() || c == '_'),
            _ => rest.split_at(first.len_utf8()),
        };
        let is_known = match first {
            '"' => tenant::knows(&token[1..token.len() - 1].replace("\"\"", "\"")),
            '\'' => CONSTANTS.contains(&&token[1..token.len() - 1]),
            '$' => {
                n_binds += 1;
                token[1..].parse() == Ok(n_binds)
            }
            '0'..='9' => before == "limit" || token == "1" || token == "0",
            'a'..='z' => WORDS.contains(&format!(" {token} ")),
            'E' => tail.starts_with('\''),
            _ => " (),.=<>+-*/%|:".contains(first),
        };
        assert!(is_known, "{token:?} in {text}");
        if first != ' ' {
            before = token;
        }
        rest = tail;
    }
    assert_eq!(n_binds, compiled.sql.binds().len(), "{text}");
}

/// Up to the quote that ends it; a doubled one does not.
fn quoted(text: &str, quote: char) -> (&str, &str) {
    let mut end = 1;
    loop {
        let found = text[end..].find(quote).unwrap_or_else(|| panic!("an open quote: {text}"));
        end += found + 1;
        if !text[end..].starts_with(quote) {
            return text.split_at(end);
        }
        end += 1;
    }
}

fn while_in(text: &str, fits: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !fits(c)).unwrap_or(text.len()))
}
