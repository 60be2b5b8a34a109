//! The body of a write: JSON with nothing lost. Numbers keep their text, and no field stands twice, at any depth.

use std::collections::HashSet;

use rowgate_core::problem::{Code, Problem};
use serde_json::value::RawValue;

use super::problem::too_many_values;
use crate::request::{Body, Input, MAX_VALUES, Row, Unreadable, fields, input, items};

/// How deep arrays and objects may stand within each other. PostgreSQL reads and prints some 10,000 levels of JSON with its
/// usual stack, and what was read must be writable again: it is the one to say no.
const MAX_DEPTH: usize = 65_536;

/// Reads a body; what is wrong with it is a 400 that says where.
pub fn parse(bytes: &[u8]) -> Result<Body<'_>, Problem> {
    let whole = whole(bytes, "send an object with the fields of a row, or an array of them")?;
    match input(whole).map_err(of_value)? {
        Input::Object(raw) => Ok(Body { rows: vec![fields(raw).map_err(of_value)?], is_list: false }),
        Input::List(raw) => {
            let items = items(raw).map_err(of_value)?;
            // looked at first: a row takes many times the memory of its text
            if MAX_VALUES < items.len() {
                return Err(too_many_values());
            }
            let (mut rows, mut n_values) = (Vec::with_capacity(items.len()), 0);
            for (i, item) in items.enumerate() {
                let Input::Object(raw) = item.map_err(of_value)? else {
                    return Err(refused(format!(
                        "the element at index {i} of the array, counted from 0, is not an object with the fields of a row"
                    )));
                };
                let row = fields(raw).map_err(of_value)?;
                n_values += row.len();
                if MAX_VALUES < n_values {
                    return Err(too_many_values());
                }
                rows.push(row);
            }
            Ok(Body { rows, is_list: true })
        }
        _ => Err(refused("the body is neither an object with the fields of a row nor an array of them")),
    }
}

/// Reads a body that is one object with options. `instead`: what to send.
pub(crate) fn object<'a>(bytes: &'a [u8], instead: &str) -> Result<Row<'a>, Problem> {
    match input(whole(bytes, instead)?).map_err(of_value)? {
        Input::Object(raw) => fields(raw).map_err(of_value),
        _ => Err(refused(format!("the body is not an object; {instead}"))),
    }
}

/// The body as JSON in which no name stands twice. `instead`: what to send.
fn whole<'a>(bytes: &'a [u8], instead: &str) -> Result<&'a str, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|_| refused("the body is not UTF-8"))?;
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| {
        let at = if bytes.is_empty() { "it is empty".to_owned() } else { place(&error) };
        refused(format!("the body is not valid JSON: {at}; {instead}"))
    })?;
    sound(whole.get())?;
    Ok(whole.get())
}

/// Refuses a field that stands twice in one object, at any depth, and what is nested too deep. `raw` is well-formed; it is
/// gone through once, and nothing calls itself.
fn sound(raw: &str) -> Result<(), Problem> {
    // The names of each object that is open, and nothing of an array.
    let mut open: Vec<Option<HashSet<String>>> = Vec::new();
    let (mut at, mut is_name) = (0, false);
    while let Some(byte) = raw.as_bytes().get(at) {
        let mut next = at + 1;
        match byte {
            b'{' | b'[' => {
                if open.len() == MAX_DEPTH {
                    return Err(refused(format!("the body is nested deeper than {MAX_DEPTH} levels")));
                }
                is_name = *byte == b'{';
                open.push(is_name.then(HashSet::new));
            }
            b'}' | b']' => drop(open.pop()),
            b',' => is_name = matches!(open.last(), Some(Some(_))),
            b':' => is_name = false,
            b'"' => {
                next = end_of_text(raw, at);
                if let (true, Some(Some(names))) = (is_name, open.last_mut()) {
                    let name: String =
                        serde_json::from_str(&raw[at..next]).map_err(|error| unreadable(&error))?;
                    let shown: String = name.chars().take(64).collect();
                    if !names.insert(name) {
                        return Err(refused(format!(
                            "the body has {shown:?} twice in one object; send each field once"
                        )));
                    }
                }
            }
            _ => {}
        }
        at = next;
    }
    Ok(())
}

/// Behind the quote that ends the text which begins at `at`.
fn end_of_text(raw: &str, at: usize) -> usize {
    let mut rest = raw.bytes().enumerate().skip(at + 1);
    while let Some((i, byte)) = rest.next() {
        match byte {
            b'"' => return i + 1,
            // whatever it stands before is no end
            b'\\' => drop(rest.next()),
            _ => {}
        }
    }
    raw.len()
}

fn of_value(Unreadable(error): Unreadable) -> Problem {
    unreadable(&error)
}

fn unreadable(error: &serde_json::Error) -> Problem {
    refused(format!("the body holds a value that is not valid JSON: {}", place(error)))
}

fn refused(what: impl Into<String>) -> Problem {
    Problem::new(Code::BadRequest, what)
}

/// Where the text stops being JSON. (What the error says besides may quote the body.)
fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
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
            ("{} {}", "not valid JSON"),
            ("7", "neither an object"),
            ("[{}, 7]", "index 1 "),
            (r#"{"a": 1, "a": 2}"#, "\"a\" twice"),
            (r#"{"a": {"b": [{"c": 1, "c": 1}]}}"#, "\"c\" twice"),
            (r#"{"a": [{"\"b": "{", "c\\": 1, "\u0063\\": 2}]}"#, "\"c\\\\\" twice"),
            (r#"{"a": "\ud800"}"#, "not valid JSON"),
        ] {
            assert!(message(text).contains(expected), "{text}: {}", message(text));
        }
        assert!(parse(b"{\"a\": \"\xff\"}").is_err());
        let deep = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
        assert!(parse(deep(65_535).as_bytes()).is_ok());
        assert!(message(&deep(65_536)).contains("deeper"));
        let objects = |n: usize| format!("{}7{}", "{\"a\":".repeat(n), "}".repeat(n));
        assert!(parse(objects(65_536).as_bytes()).is_ok());
        assert!(message(&objects(100_000)).contains("deeper"));
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
