//! One file for each command.

pub(crate) mod completions;
pub(crate) mod export;
pub(crate) mod exports;
pub(crate) mod get;
pub(crate) mod parameters;
pub(crate) mod profile;
pub(crate) mod query;
pub(crate) mod tail;
pub(crate) mod webhooks;
pub(crate) mod whoami;

use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;
use crate::output::Format;
use crate::output::rows::{Row, RowPrinter};
use crate::output::stdout::Output;

/// The text of a file; `-` is standard input.
fn read_file(path: &Path) -> Result<String, Failure> {
    let text = match is_stream(path) {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(path),
    };
    text.map_err(|error| {
        Failure::Local(format!("cannot read {}: {error}", file_name(path, "standard input")))
    })
}

/// `stream`: what `-` stands for.
fn file_name(path: &Path, stream: &str) -> String {
    if is_stream(path) { stream.to_owned() } else { path.display().to_string() }
}

fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// Takes `name`, an array of objects, out of an answer.
fn take_rows(value: &mut Value, name: &str) -> Result<Vec<Row>, Failure> {
    let rows = value.get_mut(name).map(Value::take);
    let Some(Value::Array(rows)) = rows else { return Err(unexpected(name)) };
    rows.into_iter()
        .map(|row| if let Value::Object(row) = row { Ok(row) } else { Err(unexpected(name)) })
        .collect()
}

fn unexpected(name: &str) -> Failure {
    Failure::refused(format!(
        "the answer has no {name:?} as this version of rowgate reads it; update rowgate"
    ))
}

/// Prints all rows. A table has the columns of `names` alone, where some are named, and of those the ones that have a value.
fn print_rows(
    output: &mut Output,
    format: Format,
    names: Option<&[&str]>,
    rows: &[Row],
) -> Result<(), Failure> {
    let names = names.filter(|_| format == Format::Table);
    let has_value = |name: &str| rows.iter().any(|row| row.get(name).is_some_and(|value| !value.is_null()));
    let names = names.map(|names| {
        names
            .iter()
            .filter(|name| rows.is_empty() || has_value(name))
            .map(|name| (*name).to_owned())
            .collect()
    });
    let mut printer = RowPrinter::new(format, names, output.is_terminal, output.width());
    for row in rows {
        let text = printer.row(row);
        output.write(&text)?;
    }
    output.write(&printer.end())?;
    output.flush()
}
