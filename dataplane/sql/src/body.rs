//! The body of a write: JSON with nothing lost. Numbers keep their text, and no field stands twice, at any depth.

use std::fmt;

use rowgate_core::problem::{Code, Problem};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How deep arrays and objects may stand within each other, the row itself not counted.
const MAX_DEPTH: usize = 32;

/// What a write sends: one row or a list of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    pub rows: Vec<Row>,
    /// It was an array, so that the caller gets one answer for all.
    pub is_list: bool,
}

/// Fields in the order sent, each once.
pub type Row = Vec<(String, Input)>;

/// One JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    Null,
    Bool(bool),
    /// As it was written.
    Number(String),
    Text(String),
    List(Vec<Input>),
    Object(Vec<(String, Input)>),
}

/// Reads a body; what is wrong with it is a 400 that says where.
pub fn parse(bytes: &[u8]) -> Result<Body, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|_| refused("the body is not UTF-8"))?;
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| {
        let at = if bytes.is_empty() { "it is empty".to_owned() } else { place(&error) };
        refused(format!(
            "the body is no JSON: {at}; send an object with the fields of a row, or an array of them"
        ))
    })?;
    match input(whole.get(), 0)? {
        Input::Object(row) => Ok(Body { rows: vec![row], is_list: false }),
        Input::List(items) => {
            let rows = items.into_iter().enumerate().map(|(i, item)| match item {
                Input::Object(row) => Ok(row),
                _ => {
                    Err(refused(format!("item {} of the array is no object with the fields of a row", i + 1)))
                }
            });
            Ok(Body { rows: rows.collect::<Result<_, _>>()?, is_list: true })
        }
        _ => Err(refused("the body is neither an object with the fields of a row nor an array of them")),
    }
}

impl Input {
    /// The same value as JSON text.
    pub(crate) fn write_json(&self, out: &mut String) {
        match self {
            Input::Null => out.push_str("null"),
            Input::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Input::Number(text) => out.push_str(text),
            Input::Text(text) => out.push_str(&quoted(text)),
            Input::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    item.write_json(out);
                }
                out.push(']');
            }
            Input::Object(fields) => {
                out.push('{');
                for (i, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    out.push_str(&quoted(name));
                    out.push(':');
                    value.write_json(out);
                }
                out.push('}');
            }
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always JSON")
}

/// `raw` is well-formed JSON. What stands in it is read again, level by level, which the depth bounds.
fn input(raw: &str, depth: usize) -> Result<Input, Problem> {
    // The row, or the list and its row.
    if MAX_DEPTH + 2 < depth {
        return Err(refused(format!("the body is nested deeper than {MAX_DEPTH} levels")));
    }
    let unreadable = |error: serde_json::Error| {
        refused(format!("the body holds a value that is no JSON: {}", place(&error)))
    };
    match raw.as_bytes().first() {
        Some(b'n') => Ok(Input::Null),
        Some(b't') => Ok(Input::Bool(true)),
        Some(b'f') => Ok(Input::Bool(false)),
        Some(b'"') => serde_json::from_str(raw).map(Input::Text).map_err(unreadable),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(unreadable)?;
            items
                .into_iter()
                .map(|item| input(item.get(), depth + 1))
                .collect::<Result<_, _>>()
                .map(Input::List)
        }
        Some(b'{') => {
            let Pairs(pairs) = serde_json::from_str(raw).map_err(unreadable)?;
            let mut names = std::collections::HashSet::with_capacity(pairs.len());
            if let Some((twice, _)) = pairs.iter().find(|(name, _)| !names.insert(name.as_str())) {
                let shown: String = twice.chars().take(64).collect();
                return Err(refused(format!(
                    "the body has {shown:?} twice in one object; send each field once"
                )));
            }
            let fields = pairs.iter().map(|(name, value)| Ok((name.clone(), input(value.get(), depth + 1)?)));
            fields.collect::<Result<_, Problem>>().map(Input::Object)
        }
        _ => Ok(Input::Number(raw.to_owned())),
    }
}

fn refused(what: impl Into<String>) -> Problem {
    Problem::new(Code::BadRequest, what)
}

/// Where the text stops being JSON. (What the error says besides may quote the body.)
fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

/// An object's fields as they stand there, doubles included.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Every;
        impl<'de> Visitor<'de> for Every {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(pairs)
            }
        }
        deserializer.deserialize_map(Every).map(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(text: &str) -> String {
        parse(text.as_bytes()).expect_err(text).message
    }

    #[test]
    fn numbers_and_order_stay_as_they_were_sent() {
        let body =
            parse(br#" {"b": 1.50, "a": 12345678901234567890123, "c": [1, {"x": "\u00e4"}], "d": null} "#);
        let row = &body.expect("JSON").rows[0];
        assert_eq!(row.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["b", "a", "c", "d"]);
        assert_eq!(row[0].1, Input::Number("1.50".to_owned()));
        assert_eq!(row[1].1, Input::Number("12345678901234567890123".to_owned()));
        let mut text = String::new();
        row[2].1.write_json(&mut text);
        assert_eq!(text, r#"[1,{"x":"ä"}]"#);
    }

    #[test]
    fn what_is_no_row_is_refused_and_says_where() {
        for (text, expected) in [
            ("", "it is empty"),
            ("{\"a\": }", "line 1, column 7"),
            ("{} {}", "no JSON"),
            ("7", "neither an object"),
            ("[{}, 7]", "item 2"),
            (r#"{"a": 1, "a": 2}"#, "\"a\" twice"),
            (r#"{"a": {"b": [{"c": 1, "c": 1}]}}"#, "\"c\" twice"),
            (r#"{"a": "\ud800"}"#, "no JSON"),
        ] {
            assert!(message(text).contains(expected), "{text}: {}", message(text));
        }
        assert!(parse(b"{\"a\": \"\xff\"}").is_err());
        let deep = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
        assert!(parse(deep(32).as_bytes()).is_ok());
        assert!(message(&deep(40)).contains("deeper"), "{}", message(&deep(40)));
        assert!(parse(deep(100_000).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_what_it_takes_is_the_same_json(text in r#"[\[\]{},:"a-c0-9.eE+\\ untrlsf-]{0,60}"#) {
            if let Ok(body) = parse(text.as_bytes()) {
                let mut again = String::new();
                let rows: Vec<Input> = body.rows.into_iter().map(Input::Object).collect();
                Input::List(rows).write_json(&mut again);
                let whole: serde_json::Value = serde_json::from_str(&text).expect("it was taken");
                let whole = if whole.is_array() { whole } else { serde_json::Value::Array(vec![whole]) };
                prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&again).expect("JSON"), whole);
            }
        }
    }
}
