//! What has come of a query so far, in the form that its rows are wanted in.

use rowgate_sql::shape::{Column, Shape, label};
use rowgate_sql::text::Format;
use tokio::sync::mpsc;

use crate::wire::connection::frames::Fields;
use crate::wire::encode::json;
use crate::wire::exchange::rows::Rows;
use crate::wire::failure::{Malformed, Unwritten};
use crate::wire::key_sessions::{Query, QueryColumn, QueryOutcome, RowForm, Values};

/// What rows in the wire's own form have grown to when they are handed over.
const WIRE_CHUNK: usize = 256 << 10;

pub(super) struct Collected {
    columns: Vec<QueryColumn>,
    /// In which each column comes.
    pub(super) formats: Vec<Format>,
    taken: Taken,
    chunks: Option<mpsc::Sender<Vec<u8>>>,
    max_bytes: usize,
    /// A row was left out, or the value is cut.
    pub(super) is_too_long: bool,
}

enum Taken {
    /// One JSON value, NULL until it comes.
    One {
        shape: Shape,
        value: Vec<u8>,
        n_rows: usize,
    },
    Json {
        shape: Shape,
        rows: Rows,
    },
    Wire {
        bytes: Vec<u8>,
        n_handed_over: usize,
        n_rows: usize,
        max_rows: usize,
        more: bool,
    },
}

impl Collected {
    /// Nothing yet.
    pub(super) fn new(query: &Query, columns: Vec<QueryColumn>, form: RowForm) -> Collected {
        let (formats, taken) = match form {
            RowForm::Wire(formats) => {
                let max_rows = query.values.max_rows();
                let bytes = Vec::new();
                (formats, Taken::Wire { bytes, n_handed_over: 0, n_rows: 0, max_rows, more: false })
            }
            RowForm::Json(encodings) => {
                let formats = encodings.iter().map(|encoding| encoding.format()).collect();
                let column = |(column, encoding): (&QueryColumn, _)| Column {
                    label: Some(label(&column.name)),
                    encoding,
                };
                let columns = columns.iter().zip(encodings).map(column).collect();
                let shape = Shape { columns, position: Vec::new(), count: None };
                (formats, Taken::json(query, shape))
            }
        };
        let (chunks, max_bytes) = (query.chunks.clone(), query.max_bytes);
        Collected { columns, formats, taken, chunks, max_bytes, is_too_long: false }
    }

    pub(super) fn n_rows(&self) -> usize {
        match &self.taken {
            Taken::One { n_rows, .. } | Taken::Wire { n_rows, .. } => *n_rows,
            Taken::Json { rows, .. } => rows.n_rows,
        }
    }

    fn n_bytes(&self) -> usize {
        match &self.taken {
            Taken::One { value, .. } => value.len(),
            Taken::Json { rows, .. } => rows.n_bytes(),
            Taken::Wire { bytes, n_handed_over, .. } => n_handed_over + bytes.len(),
        }
    }

    pub(super) fn add(&mut self, body: &[u8]) -> Result<(), Unwritten> {
        if self.max_bytes < self.n_bytes().saturating_add(body.len()) {
            self.is_too_long = true;
            return Ok(());
        }
        match &mut self.taken {
            Taken::Json { shape, rows } => match rows.add(shape, body) {
                Err(Unwritten::TooLong) => {
                    self.is_too_long = true;
                    Ok(())
                }
                added => added,
            },
            Taken::One { shape, value, n_rows } => {
                *n_rows += 1;
                match Fields::of_row(body)?.value()? {
                    // NULL is as good as no row.
                    None => Ok(()),
                    Some(given) => json::write(&shape.columns[0].encoding, given, value),
                }
            }
            Taken::Wire { n_rows, max_rows, more, .. } if n_rows == max_rows => {
                *more = true;
                Ok(())
            }
            Taken::Wire { bytes, n_rows, .. } => {
                if Fields::of_row(body)?.n_values() != self.formats.len() {
                    return Err(Malformed("a row whose number of columns differs from its statement").into());
                }
                let len = u32::try_from(body.len()).map_err(|_| Malformed("a row beyond 4 GiB"))?;
                bytes.extend_from_slice(&len.to_be_bytes());
                bytes.extend_from_slice(body);
                *n_rows += 1;
                Ok(())
            }
        }
    }

    /// Hands a whole chunk to who takes them. False: nobody does any more.
    pub(super) async fn hand_over(&mut self) -> bool {
        let Some(chunks) = &self.chunks else { return true };
        let chunk = match &mut self.taken {
            Taken::Json { rows, .. } if rows.is_chunk() => rows.cut(),
            Taken::Wire { bytes, n_handed_over, .. } if WIRE_CHUNK <= bytes.len() => {
                *n_handed_over += bytes.len();
                std::mem::replace(bytes, Vec::with_capacity(WIRE_CHUNK + WIRE_CHUNK / 8))
            }
            _ => return true,
        };
        chunks.send(chunk).await.is_ok()
    }

    pub(super) fn outcome(self) -> QueryOutcome {
        let (columns, is_cut) = (self.columns, self.is_too_long);
        let (json, n_rows, more) = match self.taken {
            Taken::One { value, n_rows, .. } => (value, n_rows, false),
            Taken::Json { rows, .. } => {
                let (n_rows, more) = (rows.n_rows, rows.more);
                (rows.whole(), n_rows, more)
            }
            Taken::Wire { bytes, n_rows, more, .. } => (bytes, n_rows, more),
        };
        QueryOutcome { columns, json, n_rows, more: more || is_cut, permit: None }
    }
}

impl Taken {
    fn json(query: &Query, shape: Shape) -> Taken {
        match query.values {
            Values::One => Taken::One { shape, value: Vec::new(), n_rows: 0 },
            Values::Rows { max } => Taken::Json { rows: Rows::new(&shape, max), shape },
        }
    }
}
