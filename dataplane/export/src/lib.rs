//! Rows as PostgreSQL sends them become a file: CSV, JSON lines or Parquet. Pure: it writes to a sink and does nothing else.
//!
//! Read in this order: `encoder` what goes in, `csv` and `json_lines` the formats of text, `parquet_file` the one of columns,
//! `sink` what compresses and counts the bytes, `error` what can go wrong.

mod csv;
mod encoder;
mod error;
mod json_lines;
mod parquet_file;
mod sink;

use rowgate_sql::shape::Encoding;

pub use encoder::{Encoder, formats};
pub use error::{EncodeError, Reason};

/// What kind of file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// RFC 4180 with a line of names first. NULL is an empty field, the empty string `""`, so that
    /// `copy ... from (format csv, header)` reads both back.
    Csv {
        /// A text that a spreadsheet would run as a formula gets an apostrophe in front. That alters the text.
        safe: bool,
    },
    /// A JSON object a line, with the values of `docs/types.md`.
    JsonLines,
    /// Parquet with the types of PostgreSQL as far as it has them.
    Parquet,
}

/// Of the whole file in CSV and JSON lines; of the pages within it in Parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
}

/// A column of the result, as the file shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Differs from the names of all other columns.
    pub name: String,
    pub encoding: Encoding,
    /// `atttypmod` as PostgreSQL gives it, such as the precision and scale of a `numeric`; -1: none.
    pub modifier: i32,
}

#[cfg(test)]
mod tests;
