//! Texts of rows and servers on a terminal: control characters are written out, so that they do not act.

use std::fmt::Write as _;

use serde::Serialize;

/// Characters that a terminal acts on, or that change the order of what is shown.
#[must_use]
pub(crate) fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// In one line.
#[must_use]
pub(crate) fn line(text: &str) -> String {
    escaped(text, |_| false)
}

/// Line ends stay.
#[must_use]
pub(crate) fn lines(text: &str) -> String {
    escaped(text, |c| c == '\n')
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if stays(c) || !is_control(c) => shown.push(c),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c => write!(shown, "\\u{{{:x}}}", u32::from(c)).expect("a String takes everything"),
        }
    }
    shown
}

/// JSON in one line. serde escapes the controls below the space; the others stand in texts only, where an escape means the same.
#[must_use]
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    json_text(&serde_json::to_string(value).expect("rows are JSON"))
}

/// JSON over several lines, for one object.
#[must_use]
pub(crate) fn pretty<T: Serialize>(value: &T) -> String {
    serde_json::to_string_pretty(value)
        .expect("rows are JSON")
        .lines()
        .map(json_text)
        .collect::<Vec<_>>()
        .join("\n")
}

fn json_text(text: &str) -> String {
    if !text.chars().any(is_control) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_control(c) {
            true => write!(shown, "\\u{:04x}", u32::from(c)).expect("a String takes everything"),
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn controls_are_written_out() {
        assert_eq!(line("a\u{1b}[2J\n\t\r\u{7f}\u{9b}31m"), "a\\u{1b}[2J\\n\\t\\r\\u{7f}\\u{9b}31m");
        assert_eq!(line("user\u{202e}txt.exe\u{2066}"), "user\\u{202e}txt.exe\\u{2066}");
        assert_eq!(lines("a\nb\u{1b}"), "a\nb\\u{1b}");
        assert_eq!(line("Grüße 東京"), "Grüße 東京");
    }

    #[test]
    fn json_means_the_same_and_controls_nothing() {
        let value = serde_json::json!({"a\u{9b}": "x\u{1b}\u{7f}\u{202e}\n東"});
        for shown in [json(&value), pretty(&value)] {
            assert!(!shown.chars().any(|c| c != '\n' && is_control(c)), "{shown:?}");
            assert_eq!(serde_json::from_str::<Value>(&shown).expect("JSON"), value);
        }
    }
}
