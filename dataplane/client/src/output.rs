//! What a command prints: rows in four formats, texts that cannot control a terminal.

pub(crate) mod escape;
pub(crate) mod notice;
pub(crate) mod rows;
pub(crate) mod size;
pub(crate) mod stdout;
pub(crate) mod table;

use clap::ValueEnum;

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people, cut to the width of the terminal
    Table,
    /// One JSON array, a row on each line
    Json,
    /// One JSON object on each line
    Jsonl,
    /// Comma-separated values with a header; NULL is empty, arrays and objects are JSON
    Csv,
}

impl Format {
    /// The format that was asked for, else a table on a terminal and JSON elsewhere.
    #[must_use]
    pub(crate) fn or_default(asked: Option<Format>, is_terminal: bool) -> Format {
        asked.unwrap_or(if is_terminal { Format::Table } else { Format::Json })
    }
}
