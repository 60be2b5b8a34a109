//! The body of a write: JSON with nothing lost. Numbers keep their text, and no field stands twice, at any depth.

use std::borrow::Cow;
use std::fmt;

use rowgate_core::problem::{Code, Problem};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How deep arrays and objects may stand within each other, the row itself not counted.
const MAX_DEPTH: usize = 32;

/// What a write sends: one row or a list of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Body<'a> {
    pub rows: Vec<Row<'a>>,
    /// It was an array, so that the caller gets one answer for all.
    pub is_list: bool,
}

/// Fields in the order sent, each once.
pub type Row<'a> = Vec<(String, Input<'a>)>;

/// One JSON value; numbers, arrays and objects with their text as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Input<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(String),
    List(Vec<Input<'a>>, &'a str),
    Object(Row<'a>, &'a str),
}

/// Reads a body; what is wrong with it is a 400 that says where.
pub fn parse(bytes: &[u8]) -> Result<Body<'_>, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|_| refused("the body is not UTF-8"))?;
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| {
        let at = if bytes.is_empty() { "it is empty".to_owned() } else { place(&error) };
        refused(format!(
            "the body is no JSON: {at}; send an object with the fields of a row, or an array of them"
        ))
    })?;
    match input(whole.get(), 0)? {
        Input::Object(row, _) => Ok(Body { rows: vec![row], is_list: false }),
        Input::List(items, _) => {
            let rows = items.into_iter().enumerate().map(|(i, item)| match item {
                Input::Object(row, _) => Ok(row),
                _ => {
                    Err(refused(format!("what stands at index {i} of the array, counted from 0, is no object with the fields of a row")))
                }
            });
            Ok(Body { rows: rows.collect::<Result<_, _>>()?, is_list: true })
        }
        _ => Err(refused("the body is neither an object with the fields of a row nor an array of them")),
    }
}

impl Input<'_> {
    /// The same value as JSON text: for the type json, which keeps its text, as it was sent.
    pub(crate) fn json(&self) -> Cow<'_, str> {
        match self {
            Input::Null => "null".into(),
            Input::Bool(true) => "true".into(),
            Input::Bool(false) => "false".into(),
            Input::Number(text) | Input::List(_, text) | Input::Object(_, text) => (*text).into(),
            Input::Text(text) => serde_json::to_string(text).expect("a string is always JSON").into(),
        }
    }
}

/// `raw` is well-formed JSON. What stands in it is read again, level by level, which the depth bounds.
fn input(raw: &str, depth: usize) -> Result<Input<'_>, Problem> {
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
            let items = items.into_iter().map(|item| input(item.get(), depth + 1));
            Ok(Input::List(items.collect::<Result<_, _>>()?, raw))
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
            let fields = pairs.into_iter().map(|(name, value)| Ok((name, input(value.get(), depth + 1)?)));
            Ok(Input::Object(fields.collect::<Result<_, Problem>>()?, raw))
        }
        _ => Ok(Input::Number(raw)),
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
            parse(br#" {"b": 1.50, "a": 12345678901234567890123, "c": [ 1,{"x": "\u00e4"}], "d": null} "#);
        let row = &body.expect("JSON").rows[0];
        assert_eq!(row.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["b", "a", "c", "d"]);
        assert_eq!(row[0].1, Input::Number("1.50"));
        assert_eq!(row[1].1, Input::Number("12345678901234567890123"));
        assert_eq!(row[2].1.json(), r#"[ 1,{"x": "\u00e4"}]"#);
    }

    #[test]
    fn what_is_no_row_is_refused_and_says_where() {
        for (text, expected) in [
            ("", "it is empty"),
            ("{\"a\": }", "line 1, column 7"),
            ("{} {}", "no JSON"),
            ("7", "neither an object"),
            ("[{}, 7]", "index 1 "),
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
                let field = |(name, value): &(String, Input<'_>)| format!("{}:{}", serde_json::json!(name), value.json());
                let row = |row: &Row<'_>| format!("{{{}}}", row.iter().map(field).collect::<Vec<_>>().join(","));
                let again = format!("[{}]", body.rows.iter().map(row).collect::<Vec<_>>().join(","));
                let whole: serde_json::Value = serde_json::from_str(&text).expect("it was taken");
                let whole = if whole.is_array() { whole } else { serde_json::Value::Array(vec![whole]) };
                prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&again).expect("JSON"), whole);
            }
        }
    }
}
