//! Prints rows as they come, in one of the formats.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::table::Layout;
use super::{Format, escape, table};

/// The rows that decide the widths of a table. Later ones are printed in the same columns.
const SAMPLE: usize = 1000;

/// One row: values by the names of their columns, in order.
pub(crate) type Row = Map<String, Value>;

/// Turns rows into text. It takes one row after the other, so that a long answer is never held whole.
#[derive(Debug)]
pub(crate) struct RowPrinter {
    format: Format,
    is_terminal: bool,
    width: Option<usize>,
    /// Those that were given, else those of the first row.
    names: Option<Vec<String>>,
    n_rows: u64,
    sample: Vec<Vec<Value>>,
    layout: Option<Layout>,
    left_out: BTreeSet<String>,
}

impl RowPrinter {
    /// `names`: the columns, where the answer lists them. `width`: of the terminal.
    #[must_use]
    pub(crate) fn new(
        format: Format,
        names: Option<Vec<String>>,
        is_terminal: bool,
        width: Option<usize>,
    ) -> RowPrinter {
        RowPrinter {
            format,
            is_terminal,
            width,
            names,
            n_rows: 0,
            sample: Vec::new(),
            layout: None,
            left_out: BTreeSet::new(),
        }
    }

    #[must_use]
    pub(crate) fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// Columns that the first row does not have, and that a table or CSV therefore lacks.
    #[must_use]
    pub(crate) fn left_out(&self) -> &BTreeSet<String> {
        &self.left_out
    }

    /// The text of one more row.
    pub(crate) fn row(&mut self, row: &Row) -> String {
        self.n_rows += 1;
        match self.format {
            Format::Json => format!("{}{}", if self.n_rows == 1 { "[\n" } else { ",\n" }, escape::json(row)),
            Format::Jsonl => format!("{}\n", escape::json(row)),
            Format::Csv => {
                let values = self.values(row);
                let head = if self.n_rows == 1 { self.csv_head() } else { String::new() };
                head + &self.csv(values.iter().map(csv_field))
            }
            Format::Table => {
                let values = self.values(row);
                if let Some(layout) = &self.layout {
                    return layout.row(&values);
                }
                self.sample.push(values);
                if self.sample.len() < SAMPLE { String::new() } else { self.sampled() }
            }
        }
    }

    /// What stands behind the last row.
    pub(crate) fn end(&mut self) -> String {
        match (self.format, self.n_rows) {
            (Format::Json, 0) => "[]\n".to_owned(),
            (Format::Json, _) => "\n]\n".to_owned(),
            (Format::Csv, 0) if self.names.is_some() => self.csv_head(),
            (Format::Table, _) if self.layout.is_none() && self.names.is_some() => self.sampled(),
            _ => String::new(),
        }
    }

    /// In the order of the columns.
    fn values(&mut self, row: &Row) -> Vec<Value> {
        let names = self.names.get_or_insert_with(|| row.keys().cloned().collect());
        if row.len() != names.len() || row.keys().any(|key| !names.contains(key)) {
            self.left_out.extend(row.keys().filter(|key| !names.contains(key)).cloned());
        }
        names.iter().map(|name| row.get(name).cloned().unwrap_or(Value::Null)).collect()
    }

    fn sampled(&mut self) -> String {
        let (names, sample) = (self.names.clone().unwrap_or_default(), std::mem::take(&mut self.sample));
        let layout = Layout::of(&names, &sample, self.width);
        let mut text = layout.head(&names);
        text.extend(sample.iter().map(|values| layout.row(values)));
        self.layout = Some(layout);
        text
    }

    fn csv_head(&self) -> String {
        self.csv(self.names.iter().flatten().cloned())
    }

    fn csv(&self, fields: impl Iterator<Item = String>) -> String {
        let fields = fields.map(|field| if self.is_terminal { escape::lines(&field) } else { field });
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(fields).expect("memory takes every record");
        let bytes = writer.into_inner().expect("memory is flushed");
        String::from_utf8(bytes).expect("the fields are texts")
    }
}

/// Texts as they are, NULL as nothing, all else as JSON.
fn csv_field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => table::cell(Some(other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn printed(format: Format, names: Option<&[&str]>, rows: &[Value]) -> String {
        let names = names.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let mut printer = RowPrinter::new(format, names, false, None);
        let body: String = rows.iter().map(|row| printer.row(row.as_object().expect("an object"))).collect();
        body + &printer.end()
    }

    fn rows() -> [Value; 2] {
        [json!({"id": 7, "note": "a, \"b\"\nc"}), json!({"id": 8.50, "note": null})]
    }

    #[test]
    fn json_is_one_array_and_lines_are_objects() {
        let json = "[\n{\"id\":7,\"note\":\"a, \\\"b\\\"\\nc\"},\n{\"id\":8.5,\"note\":null}\n]\n";
        assert_eq!(printed(Format::Json, None, &rows()), json);
        let lines = "{\"id\":7,\"note\":\"a, \\\"b\\\"\\nc\"}\n{\"id\":8.5,\"note\":null}\n";
        assert_eq!(printed(Format::Jsonl, None, &rows()), lines);
    }

    #[test]
    fn csv_quotes_and_leaves_null_empty() {
        assert_eq!(printed(Format::Csv, None, &rows()), "id,note\n7,\"a, \"\"b\"\"\nc\"\n8.5,\n");
        let nested = [json!({"a": [1, {"b": true}]})];
        assert_eq!(printed(Format::Csv, None, &nested), "a\n\"[1,{\"\"b\"\":true}]\"\n");
    }

    #[test]
    fn without_rows_the_columns_are_there_where_they_are_known() {
        assert_eq!(printed(Format::Json, Some(&["id"]), &[]), "[]\n");
        assert_eq!(printed(Format::Jsonl, None, &[]), "");
        assert_eq!(printed(Format::Csv, Some(&["id", "b,c"]), &[]), "id,\"b,c\"\n");
        assert_eq!(printed(Format::Table, Some(&["id"]), &[]), "id\n--\n");
        assert_eq!(printed(Format::Table, None, &[]), "");
    }

    #[test]
    fn numbers_keep_their_digits() {
        let row: Value = serde_json::from_str(r#"{"n": 12345678901234567890.1234567890}"#).expect("JSON");
        assert_eq!(printed(Format::Csv, None, &[row]), "n\n12345678901234567890.1234567890\n");
    }

    #[test]
    fn columns_that_come_late_are_named() {
        let mut printer = RowPrinter::new(Format::Csv, None, false, None);
        for row in [json!({"id": 1}), json!({"id": 2, "lines@hasMore": true})] {
            printer.row(row.as_object().expect("an object"));
        }
        assert_eq!(printer.left_out().iter().collect::<Vec<_>>(), ["lines@hasMore"]);
    }

    #[test]
    fn a_long_table_is_printed_as_it_comes() {
        let mut printer = RowPrinter::new(Format::Table, None, false, None);
        let texts: Vec<usize> =
            (0..1200).map(|n| printer.row(json!({"n": n}).as_object().expect("an object")).len()).collect();
        assert!(texts[..999].iter().all(|len| *len == 0) && texts[999] == 4 * 1002 && texts[1000] == 5);
        assert_eq!(printer.end(), "");
    }
}
