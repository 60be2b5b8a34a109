//! JSON lines: an object a row, with the values that the REST surface shows.

use std::io::Write;

use rowgate_pg::wire::{Fields, write_json};
use rowgate_sql::shape::{Body, Encoding, label};

use crate::error::EncodeError;
use crate::sink::Sink;
use crate::{Column, Compression};

pub(crate) struct JsonLines<W: Write> {
    columns: Vec<(Box<str>, Encoding)>,
    /// A column of `json` is shown as it is stored, which may be several lines.
    may_hold_lines: bool,
    sink: Sink<W>,
}

impl<W: Write> JsonLines<W> {
    pub(crate) fn new(
        columns: Vec<Column>,
        compression: Compression,
        into: W,
    ) -> Result<JsonLines<W>, EncodeError> {
        Ok(JsonLines {
            may_hold_lines: columns.iter().any(|column| holds_json(&column.encoding)),
            columns: columns.into_iter().map(|column| (label(&column.name), column.encoding)).collect(),
            sink: Sink::new(compression, into)?,
        })
    }

    pub(crate) fn row(&mut self, fields: &mut Fields<'_>) -> Result<(), EncodeError> {
        let out = self.sink.text();
        let start = out.len();
        out.push(b'{');
        for (i, (label, encoding)) in self.columns.iter().enumerate() {
            if 0 < i {
                out.push(b',');
            }
            out.extend_from_slice(label.as_bytes());
            match fields.value()? {
                None => out.extend_from_slice(b"null"),
                Some(value) => write_json(encoding, value, out)?,
            }
        }
        out.push(b'}');
        if self.may_hold_lines {
            // strings hold none, so it is space between tokens
            let breaks = out[start..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r'));
            breaks.for_each(|byte| *byte = b' ');
        }
        out.push(b'\n');
        Ok(self.sink.end_row()?)
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.sink.n_bytes()
    }

    pub(crate) fn finish(self) -> Result<W, EncodeError> {
        Ok(self.sink.finish()?)
    }
}

/// Recurses along the type, whose depth is bounded.
fn holds_json(encoding: &Encoding) -> bool {
    match encoding {
        Encoding::Json => true,
        Encoding::Nested(nested) => match &nested.body {
            Body::Array { element, .. } => holds_json(&element.encoding),
            Body::Composite(attributes) => {
                attributes.iter().any(|attribute| holds_json(&attribute.part.encoding))
            }
        },
        _ => false,
    }
}
