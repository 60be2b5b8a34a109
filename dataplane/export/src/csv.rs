//! CSV by RFC 4180, of values as PostgreSQL prints them, so that COPY reads the same rows back.

use std::io::Write;

use rowgate_pg::wire::Fields;
use rowgate_sql::shape::Encoding;

use crate::error::EncodeError;
use crate::sink::Sink;
use crate::{Column, Compression};

/// What makes a spreadsheet take a cell for a formula, or leave it for the next one: `=`, `+`, `-`, `@`, tab and carriage
/// return, and the full-width forms of the first four.
const FORMULAS: [&str; 10] = ["=", "+", "-", "@", "\t", "\r", "\u{ff1d}", "\u{ff0b}", "\u{ff0d}", "\u{ff20}"];

pub(crate) struct Csv<W: Write> {
    /// Of each column, whether a cell may need an apostrophe in front.
    is_guarded: Vec<bool>,
    sink: Sink<W>,
}

impl<W: Write> Csv<W> {
    pub(crate) fn new(
        columns: &[Column],
        safe: bool,
        compression: Compression,
        into: W,
    ) -> Result<Csv<W>, EncodeError> {
        let mut sink = Sink::new(compression, into)?;
        let out = sink.text();
        for (i, column) in columns.iter().enumerate() {
            if 0 < i {
                out.push(b',');
            }
            cell(column.name.as_bytes(), safe, columns.len() == 1, out);
        }
        out.extend_from_slice(b"\r\n");
        let is_guarded = columns.iter().map(|column| safe && !is_number(&column.encoding)).collect();
        Ok(Csv { is_guarded, sink })
    }

    pub(crate) fn row(&mut self, fields: &mut Fields<'_>) -> Result<(), EncodeError> {
        let out = self.sink.text();
        let is_alone = self.is_guarded.len() == 1;
        for (i, is_guarded) in self.is_guarded.iter().enumerate() {
            if 0 < i {
                out.push(b',');
            }
            if let Some(value) = fields.value()? {
                cell(value, *is_guarded, is_alone, out);
            }
        }
        out.extend_from_slice(b"\r\n");
        Ok(self.sink.end_row()?)
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.sink.n_bytes()
    }

    pub(crate) fn finish(self) -> Result<W, EncodeError> {
        Ok(self.sink.finish()?)
    }
}

/// `is_alone`: there is no other cell in its line, where `\.` would be the end of the data for COPY.
fn cell(value: &[u8], is_guarded: bool, is_alone: bool, out: &mut Vec<u8>) {
    let guard: &[u8] = if is_guarded && FORMULAS.iter().any(|start| value.starts_with(start.as_bytes())) {
        b"'"
    } else {
        b""
    };
    let is_special = |byte: &u8| matches!(byte, b'"' | b',' | b'\r' | b'\n');
    let is_quoted = value.is_empty() || value.iter().any(is_special) || (is_alone && value == b"\\.");
    if !is_quoted {
        out.extend_from_slice(guard);
        out.extend_from_slice(value);
        return;
    }
    out.push(b'"');
    out.extend_from_slice(guard);
    for (i, part) in value.split(|byte| *byte == b'"').enumerate() {
        if 0 < i {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(part);
    }
    out.push(b'"');
}

fn is_number(encoding: &Encoding) -> bool {
    matches!(
        encoding,
        Encoding::Int2
            | Encoding::Int4
            | Encoding::Int8
            | Encoding::Oid
            | Encoding::Float4
            | Encoding::Float8
            | Encoding::Numeric
    )
}
