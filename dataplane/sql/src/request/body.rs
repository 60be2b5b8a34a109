//! The body of a write, as it was sent: numbers, arrays and objects keep their text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// As many values, or rows without any, as PostgreSQL takes in one statement.
pub(crate) const MAX_VALUES: usize = 65_535;

/// What a write sends: one row or a list of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Body<'a> {
    pub rows: Vec<Row<'a>>,
    /// It was an array, so that the caller gets one answer for all.
    pub is_list: bool,
}

/// Fields in the order sent, each once.
pub type Row<'a> = Vec<(String, Input<'a>)>;

/// One JSON value; numbers, arrays and objects as the text that was sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Input<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(String),
    List(&'a str),
    Object(&'a str),
}

/// What is no JSON.
#[derive(Debug)]
pub struct Unreadable(pub(crate) serde_json::Error);

impl Input<'_> {
    /// The same value as JSON text: for the type json, which keeps its text, as it was sent.
    pub(crate) fn json(&self) -> Cow<'_, str> {
        match self {
            Input::Null => "null".into(),
            Input::Bool(true) => "true".into(),
            Input::Bool(false) => "false".into(),
            Input::Number(text) | Input::List(text) | Input::Object(text) => (*text).into(),
            Input::Text(text) => serde_json::to_string(text).expect("a string is always JSON").into(),
        }
    }
}

/// What an array holds, each read when it is asked for.
pub fn items(raw: &str) -> Result<impl ExactSizeIterator<Item = Result<Input<'_>, Unreadable>>, Unreadable> {
    let items: Vec<&RawValue> = serde_json::from_str(raw).map_err(Unreadable)?;
    Ok(items.into_iter().map(|item| input(item.get())))
}

/// What an object holds.
pub fn fields(raw: &str) -> Result<Row<'_>, Unreadable> {
    let Pairs(pairs) = serde_json::from_str(raw).map_err(Unreadable)?;
    let mut row = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        row.push((name, input(value.get())?));
    }
    Ok(row)
}

/// `raw` is well-formed JSON. What stands in an array or an object is not looked at: only a column's type tells how far it is
/// to be taken apart.
pub fn input(raw: &str) -> Result<Input<'_>, Unreadable> {
    match raw.as_bytes().first() {
        Some(b'n') => Ok(Input::Null),
        Some(b't') => Ok(Input::Bool(true)),
        Some(b'f') => Ok(Input::Bool(false)),
        Some(b'"') => serde_json::from_str(raw).map(Input::Text).map_err(Unreadable),
        Some(b'[') => Ok(Input::List(raw)),
        Some(b'{') => Ok(Input::Object(raw)),
        _ => Ok(Input::Number(raw)),
    }
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
