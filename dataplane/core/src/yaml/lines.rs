//! YAML for people and for every reader: one line for each name or item, and texts that mean the same in YAML 1.1 and 1.2.
//!
//! `kubectl` reads YAML 1.1, where `no`, `on` and `1_000` without quotes are no texts; the writer behind [`super::to_string`] leaves them bare.

use std::fmt::Write as _;

use serde_json::Value;

/// Words that one of the versions reads as something else, in lower case.
const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// The value as the lines of one document, without ends of lines. Indented, they are a part of a greater one.
#[must_use]
pub fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().flat_map(|(name, value)| member(name, value)).collect()
        }
        Value::Array(items) if !items.is_empty() => items.iter().flat_map(item).collect(),
        Value::Object(_) => vec!["{}".to_owned()],
        Value::Array(_) => vec!["[]".to_owned()],
        Value::String(text) => vec![scalar(text)],
        Value::Null | Value::Bool(_) | Value::Number(_) => vec![value.to_string()],
    }
}

/// The value as one document.
#[must_use]
pub fn document_of(value: &Value) -> String {
    lines(value).into_iter().map(|line| line + "\n").collect()
}

/// Lines one level deeper.
#[must_use]
pub fn indented(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

fn member(name: &str, value: &Value) -> Vec<String> {
    let (name, below) = (scalar(name), lines(value));
    match value {
        Value::Object(map) if !map.is_empty() => [vec![format!("{name}:")], indented(below)].concat(),
        Value::Array(items) if !items.is_empty() => [vec![format!("{name}:")], below].concat(),
        _ => vec![format!("{name}: {}", below.concat())],
    }
}

fn item(value: &Value) -> Vec<String> {
    let mark =
        |(index, line): (usize, String)| if index == 0 { format!("- {line}") } else { format!("  {line}") };
    lines(value).into_iter().enumerate().map(mark).collect()
}

/// A text on one line, in quotes unless it is a word; within `{}` and `[]` too.
#[must_use]
pub fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(is_plain)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if is_word {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        match (c, u32::from(c)) {
            ('"' | '\\', _) => quoted.extend(['\\', c]),
            (c, _) if is_printable(c) => quoted.push(c),
            (_, code) => write!(quoted, "\\u{code:04x}").expect("a String takes every text"),
        }
    }
    quoted.push('"');
    quoted
}

/// A comment on one line; what would end the line, or what YAML does not allow, is a space.
#[must_use]
pub fn comment(text: &str) -> String {
    let text: String = text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect();
    format!("# {text}").trim_end().to_owned()
}

/// Those that are not all have at most four hexadecimal digits.
fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::document;
    use super::*;

    #[test]
    fn texts_stay_texts() {
        for (text, expected) in [
            ("orders", "orders"),
            ("order-items", "order-items"),
            ("rowgate.dev/v1alpha1", "rowgate.dev/v1alpha1"),
            ("no", "\"no\""),
            ("On", "\"On\""),
            ("NULL", "\"NULL\""),
            ("y", "\"y\""),
            ("", "\"\""),
            ("1_000", "\"1_000\""),
            ("0x1f", "\"0x1f\""),
            ("2026-01-01", "\"2026-01-01\""),
            (".inf", "\".inf\""),
            ("-", "\"-\""),
            ("~", "\"~\""),
            ("a: b", "\"a: b\""),
            ("a #b", "\"a #b\""),
            ("a,b", "\"a,b\""),
            ("it's \"mine\"", "\"it's \\\"mine\\\"\""),
            ("a\\b", "\"a\\\\b\""),
            ("a\nb\t\u{7f}\u{85}\u{2028}\u{feff}", "\"a\\u000ab\\u0009\\u007f\\u0085\\u2028\\ufeff\""),
            (" größe 日本 🦀", "\" größe 日本 🦀\""),
        ] {
            assert_eq!(scalar(text), expected, "{text:?}");
            for yaml in [scalar(text), format!("- {}", scalar(text)), format!("[{}]", scalar(text))] {
                let read = document(&yaml).unwrap_or_else(|error| panic!("{yaml}: {error}"));
                let read = read.get(0).unwrap_or(&read);
                assert_eq!(read, text, "{yaml}");
            }
        }
    }

    #[test]
    fn a_value_is_read_back() {
        let value = json!({
            "no": [1, -2, true, null, {"a": {"b": []}, "c": {}}, ["x", ["y"]]],
            "a\nb": "c\nd",
            "list": [{"name": "on", "source": {"schema": "app", "object": "1"}}],
        });
        assert_eq!(document(&document_of(&value)), Ok(value));
        let expected = ["list:", "- name: \"on\"", "  source:", "    object: app", "  none: true"];
        let value = json!({"list": [{"name": "on", "source": {"object": "app"}, "none": true}]});
        assert_eq!(lines(&value), expected);
    }

    #[test]
    fn a_comment_stays_one() {
        for text in ["a\nkind: Tenant", "a\rkind: Tenant", "a\u{85}b: c", "a\u{2028}b: c", ""] {
            let yaml = format!("{}\nx: 1\n", comment(text));
            assert_eq!(document(&yaml), Ok(json!({"x": 1})), "{text:?}");
        }
        assert_eq!(comment(""), "#");
    }
}
