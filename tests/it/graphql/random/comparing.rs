//! An answer beside what it has to be, to the byte: members in their order, numbers as they are written.

use serde_json::Value;

use super::oracle::CURSOR;

/// Where a list ended.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) list: usize,
    pub(super) row: String,
    pub(super) cursor: String,
}

/// Notes the cursors, of which nothing is known but that they are there.
pub(super) fn agree(found: &Value, wanted: &Value, at: &str, pages: &mut Vec<Page>) -> Result<(), String> {
    match (found, wanted) {
        (Value::String(cursor), Value::String(text)) if text.starts_with(CURSOR) => {
            let (list, row) = text[CURSOR.len()..].split_once(' ').expect("a number and a row");
            let list = list.parse().expect("a number");
            pages.push(Page { list, row: row.to_owned(), cursor: cursor.clone() });
            Ok(())
        }
        (Value::Object(one), Value::Object(other)) => {
            if one.keys().ne(other.keys()) {
                return Err(format!("{at} is {found}\nand not {wanted}"));
            }
            one.iter()
                .zip(other.values())
                .try_for_each(|((key, found), wanted)| agree(found, wanted, &format!("{at}.{key}"), pages))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .enumerate()
            .try_for_each(|(i, (found, wanted))| agree(found, wanted, &format!("{at}[{i}]"), pages)),
        _ if text(found) == text(wanted) => Ok(()),
        _ => Err(format!("{at} is {found}\nand not {wanted}")),
    }
}

/// A number as it is written: 1.50 is not 1.5.
fn text(value: &Value) -> String {
    value.to_string()
}
