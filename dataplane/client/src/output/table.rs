//! A table of texts: columns as wide as their values, cut to the width of the terminal.

use serde_json::Value;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::escape;

const GAP: &str = "  ";
const ELLIPSIS: char = '…';
/// No column is made narrower to fit a terminal.
const MIN_WIDTH: usize = 6;
/// No column is wider, on whatever output: a row stays readable.
const MAX_WIDTH: usize = 1000;
/// The widest id: a UUID.
const ID_WIDTH: usize = 36;

/// The columns of a table that is printed in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    columns: Vec<Column>,
    width: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    width: usize,
    /// Longer values are cut. A value of a later row may be wider than the column.
    max: usize,
    is_right: bool,
}

/// The text of a value in a cell.
#[must_use]
pub(crate) fn cell(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::Null) => "NULL".to_owned(),
        Some(Value::String(text)) => escape::line(text),
        Some(other) => escape::json(other),
    }
}

impl Layout {
    /// For these rows of cells below their names. `width`: the columns of the terminal, if it is one.
    #[must_use]
    pub(crate) fn of(names: &[String], rows: &[Vec<Value>], width: Option<usize>) -> Layout {
        let mut columns: Vec<Column> = names
            .iter()
            .enumerate()
            .map(|(i, name)| {
                let values = || rows.iter().filter_map(|row| row.get(i));
                let widest = values().map(|value| cell(Some(value)).width()).max().unwrap_or_default();
                let is_right =
                    values().any(Value::is_number) && values().all(|it| it.is_number() || it.is_null());
                Column {
                    width: widest.max(escape::line(name).width()).min(MAX_WIDTH),
                    max: MAX_WIDTH,
                    is_right,
                }
            })
            .collect();
        if let Some(width) = width {
            shrink(&mut columns, width);
        }
        Layout { columns, width }
    }

    /// The names and a rule below them.
    #[must_use]
    pub(crate) fn head(&self, names: &[String]) -> String {
        let names: Vec<String> = names.iter().map(|name| escape::line(name)).collect();
        let rules: Vec<String> = self.columns.iter().map(|column| "-".repeat(column.width)).collect();
        format!("{}{}", self.line(&names), self.line(&rules))
    }

    #[must_use]
    pub(crate) fn row(&self, values: &[Value]) -> String {
        let cells: Vec<String> = values.iter().map(|value| cell(Some(value))).collect();
        self.line(&cells)
    }

    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for (i, (column, text)) in self.columns.iter().zip(cells).enumerate() {
            if i != 0 {
                line.push_str(GAP);
            }
            let text = cut(text, column.max);
            let blank = " ".repeat(column.width.saturating_sub(text.width()));
            line.push_str(&if column.is_right { blank + &text } else { text + &blank });
        }
        let line = line.trim_end();
        format!("{}\n", self.width.map_or_else(|| line.to_owned(), |width| cut(line, width)))
    }
}

/// Takes from the widest columns until all of them fit, if they can. Half a number is another number, and half an id is none: those
/// columns stay.
fn shrink(columns: &mut [Column], width: usize) {
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    let is_id = columns.first().is_some_and(|column| column.width <= ID_WIDTH);
    loop {
        let excess = (columns.iter().map(|column| column.width).sum::<usize>() + gaps).saturating_sub(width);
        let others = columns.iter_mut().skip(usize::from(is_id)).filter(|column| !column.is_right);
        let widest = others.max_by_key(|column| column.width);
        match widest.filter(|column| MIN_WIDTH < column.width) {
            Some(column) if excess != 0 => {
                column.width -= 1;
                column.max = column.width;
            }
            _ => return,
        }
    }
}

/// The text in at most `width` columns, with an ellipsis where something is missing.
#[must_use]
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut shown, mut n) = (String::new(), 1);
    for c in text.chars() {
        n += c.width().unwrap_or_default();
        if width < n {
            break;
        }
        shown.push(c);
    }
    if width != 0 {
        shown.push(ELLIPSIS);
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table(names: &[&str], rows: &[Value], width: Option<usize>) -> String {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let rows: Vec<Vec<Value>> = rows.iter().map(|row| row.as_array().expect("a row").clone()).collect();
        let layout = Layout::of(&names, &rows, width);
        let body: String = rows.iter().map(|row| layout.row(row)).collect();
        layout.head(&names) + &body
    }

    #[test]
    fn numbers_stand_right_and_texts_left() {
        let rows = [json!([7, "Ada", null]), json!([123, "東京", {"a": [1]}])];
        let shown = " id  name  more
---  ----  ---------
  7  Ada   NULL
123  東京  {\"a\":[1]}
";
        assert_eq!(table(&["id", "name", "more"], &rows, None), shown);
    }

    #[test]
    fn a_wide_table_is_cut_to_the_terminal() {
        let rows = [json!([1, "x".repeat(50), "short"])];
        let shown = table(&["id", "text", "last"], &rows, Some(30));
        for line in shown.lines() {
            assert!(line.width() <= 30, "{line}");
        }
        assert!(shown.contains("x…  short"), "{shown}");
    }

    #[test]
    fn ids_and_numbers_are_whole() {
        let rows = [json!(["x".repeat(20), "y".repeat(20), 123_456_789])];
        let line = |width| table(&["id", "text", "n"], &rows, Some(width)).lines().last().map(str::to_owned);
        assert_eq!(line(41), Some(format!("{}  {}…  123456789", "x".repeat(20), "y".repeat(7))));
        assert_eq!(line(30), Some(format!("{}  {}… …", "x".repeat(20), "y".repeat(5))));
    }

    #[test]
    fn more_columns_than_fit_are_cut_as_a_line() {
        let names: Vec<String> = (0..30).map(|n| format!("column{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let row = Value::Array((0..30).map(|n| json!(n)).collect());
        for line in table(&names, &[row], Some(40)).lines() {
            assert!(line.width() == 40 && line.ends_with(ELLIPSIS), "{line}");
        }
    }

    #[test]
    fn controls_do_not_reach_the_terminal() {
        let shown = table(&["na\u{1b}me"], &[json!(["a\u{1b}[31m\nb"]), json!([["\u{9b}"]])], None);
        assert!(!shown.replace('\n', "").chars().any(char::is_control), "{shown:?}");
        assert_eq!(shown.lines().count(), 4);
    }

    #[test]
    fn wide_characters_are_not_halved() {
        assert_eq!(cut("東京都", 6), "東京都");
        assert_eq!(cut("東京都", 5), "東京…");
        assert_eq!(cut("東京都", 4), "東…");
        assert_eq!(cut("abc", 1), "…");
        assert_eq!(cut("abc", 0), "");
    }
}
