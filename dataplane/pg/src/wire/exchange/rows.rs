//! The rows of an answer, written as JSON and cut into chunks.

use rowgate_core::cursor::Position;
use rowgate_sql::shape::Shape;

use crate::wire::connection::frames::Fields;
use crate::wire::encode::json;
use crate::wire::failure::{Malformed, Unwritten};

/// What has grown to this leaves at once; a smaller answer is one buffer.
pub(crate) const CHUNK: usize = 64 << 10;
/// A page that has grown to this is full, whatever number of rows was asked for: the rest is on the next one. Its rows
/// hold a connection until they are delivered, and a page of any length would never be through in the statement's time.
const FULL: usize = 32 << 20;

/// What became of the DataRows so far.
pub(crate) struct Rows {
    take: usize,
    json: Vec<u8>,
    /// What was cut off before `json`.
    n_bytes_cut: usize,
    pub(crate) n_rows: usize,
    pub(crate) more: bool,
    /// One entry for each position of the shape; their buffers serve every row.
    last: Position,
    pub(crate) count: Option<i64>,
    /// How long a page may become.
    full: usize,
    /// There was too much to keep: nothing of it is shown.
    pub(crate) is_left_out: bool,
}

impl Rows {
    /// All of what a write gives back: it is one answer, which no next page continues.
    pub(crate) fn of_write(shape: &Shape) -> Rows {
        Rows { full: usize::MAX, ..Rows::new(shape, usize::MAX) }
    }

    /// All of what a call gives, or none of it.
    pub(crate) fn of_call(shape: &Shape, keeps: bool) -> Rows {
        let take = if keeps { usize::MAX } else { 0 };
        Rows { full: usize::MAX, ..Rows::new(shape, take) }
    }

    pub(crate) fn new(shape: &Shape, take: usize) -> Rows {
        let last = vec![None; shape.position.len()];
        let (json, is_left_out) = (Vec::new(), false);
        Rows {
            take,
            json,
            n_bytes_cut: 0,
            n_rows: 0,
            more: false,
            last,
            count: None,
            full: FULL,
            is_left_out,
        }
    }

    /// Adds one row, or notes that there was one more than are taken, or than a page holds.
    ///
    /// # Errors
    ///
    /// The row is none of the shape; or it is too long, and is left out.
    pub(crate) fn add(&mut self, shape: &Shape, body: &[u8]) -> Result<(), Unwritten> {
        let mut fields = Fields::of_row(body)?;
        if fields.n_values() != shape.columns.len() {
            return Err(Malformed("a row whose number of columns differs from its statement").into());
        }
        if self.n_rows == self.take || self.is_full() {
            self.more = true;
            return Ok(());
        }
        let start = self.json.len();
        let out = &mut self.json;
        if 0 < self.n_rows {
            out.push(b',');
        }
        out.push(b'{');
        let mut is_first = true;
        for (i, column) in shape.columns.iter().enumerate() {
            let value = fields.value()?;
            for (_, slot) in shape.position.iter().zip(&mut self.last).filter(|(at, _)| **at == i) {
                keep(value, slot);
            }
            if shape.count == Some(i) && self.count.is_none() {
                self.count = Some(number(value)?);
            }
            let Some(label) = &column.label else { continue };
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            out.extend_from_slice(label.as_bytes());
            match value {
                None => out.extend_from_slice(b"null"),
                Some(value) => {
                    if let Err(unwritten) = json::write(&column.encoding, value, out) {
                        out.truncate(start);
                        return Err(unwritten);
                    }
                }
            }
        }
        out.push(b'}');
        self.n_rows += 1;
        Ok(())
    }

    /// Whether a chunk is ready to be cut.
    pub(crate) fn is_chunk(&self) -> bool {
        CHUNK <= self.json.len()
    }

    /// Whether the page is full and there is a row behind it: whatever else comes is not needed.
    pub(crate) fn is_over(&self) -> bool {
        self.more && self.is_full()
    }

    /// How long it is so far, as JSON.
    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes_cut + self.json.len()
    }

    /// Whether what was kept takes more memory than one answer may.
    pub(crate) fn is_long(&self) -> bool {
        FULL < self.json.len()
    }

    /// Gives up what a write gives back where that takes more memory than one answer may: the write itself goes on.
    pub(crate) fn give_up_if_long(&mut self) {
        if self.is_long() {
            (self.json, self.take, self.is_left_out) = (Vec::new(), self.n_rows, true);
        }
    }

    /// Whether the page holds no further row.
    fn is_full(&self) -> bool {
        self.full <= self.n_bytes()
    }

    /// What was written since the last cut.
    pub(crate) fn cut(&mut self) -> Vec<u8> {
        // The next chunk will be as long as this one, or longer by less than a row.
        let chunk = std::mem::replace(&mut self.json, Vec::with_capacity(CHUNK + CHUNK / 8));
        self.n_bytes_cut += chunk.len();
        chunk
    }

    /// What was written, where nothing was cut.
    pub(crate) fn whole(self) -> Vec<u8> {
        self.json
    }

    /// Where the last row stands that was written so far.
    pub(crate) fn position(&self) -> Option<Position> {
        (0 < self.n_rows && !self.last.is_empty()).then(|| self.last.clone())
    }

    /// Where the last written row stands.
    pub(crate) fn last(&mut self) -> Option<Position> {
        (0 < self.n_rows && !self.last.is_empty()).then(|| std::mem::take(&mut self.last))
    }
}

/// Whether the columns that PostgreSQL describes have the formats that `shape` reads.
pub(crate) fn fit(shape: &Shape, description: &[u8]) -> Result<bool, Malformed> {
    let mut fields = Fields::new(description);
    if usize::from(u16::from_be_bytes(fields.bytes()?)) != shape.columns.len() {
        return Ok(false);
    }
    let mut all = true;
    for column in &shape.columns {
        fields.text()?;
        // Table, number of its column; type; length, modifier, format.
        let _: [u8; 6] = fields.bytes()?;
        let oid = u32::from_be_bytes(fields.bytes()?);
        let _: [u8; 8] = fields.bytes()?;
        all &= json::fits(&column.encoding, oid);
    }
    Ok(all)
}

fn number(value: Option<&[u8]>) -> Result<i64, Malformed> {
    let bytes = value.and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
    bytes.map(i64::from_be_bytes).ok_or(Malformed("a count that is not a bigint"))
}

fn keep(value: Option<&[u8]>, slot: &mut Option<Vec<u8>>) {
    match (value, slot) {
        (Some(value), Some(kept)) => {
            kept.clear();
            kept.extend_from_slice(value);
        }
        (value, slot) => *slot = value.map(<[u8]>::to_vec),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rowgate_sql::shape::{Column, Encoding};

    use super::*;

    fn shape() -> Shape {
        let column = |label: Option<&str>, encoding| Column { label: label.map(Into::into), encoding };
        Shape {
            columns: vec![
                column(None, Encoding::Int4),
                column(Some("\"a\":"), Encoding::Text),
                column(Some("\"b\":"), Encoding::Bool),
            ],
            position: vec![1, 0],
            count: None,
        }
    }

    fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
        let mut body = (values.len() as u16).to_be_bytes().to_vec();
        for value in values {
            let len = value.map_or(-1, |value| value.len() as i32);
            body.extend_from_slice(&len.to_be_bytes());
            body.extend_from_slice(value.unwrap_or_default());
        }
        body
    }

    #[test]
    fn rows_are_objects_joined_by_commas_up_to_what_is_taken() {
        let shape = shape();
        let mut rows = Rows::new(&shape, 2);
        assert_eq!(rows.last(), None);
        for (number, text) in [(1u8, Some(&b"x\"y"[..])), (2, None), (3, Some(b"not taken"))] {
            rows.add(&shape, &row(&[Some(&[0, 0, 0, number]), text, Some(&[1])])).expect("a row");
        }
        assert_eq!(String::from_utf8_lossy(&rows.json), r#"{"a":"x\"y","b":true},{"a":null,"b":true}"#);
        assert!(rows.more && rows.n_rows == 2);
        assert_eq!(rows.last(), Some(vec![None, Some(vec![0, 0, 0, 2])]));
    }

    #[test]
    fn a_page_of_wide_rows_ends_early_and_says_where() {
        let shape = shape();
        let wide = vec![b'x'; 1 << 20];
        let mut rows = Rows::new(&shape, 100_000);
        for number in 0..100u8 {
            rows.add(&shape, &row(&[Some(&[0, 0, 0, number]), Some(&wide), Some(&[1])])).expect("a row");
        }
        assert!(rows.more && rows.json.len() < FULL + 2 * wide.len(), "{}", rows.json.len());
        let last = rows.n_rows as u8 - 1;
        assert_eq!(rows.last().expect("a position")[1], Some(vec![0, 0, 0, last]));
    }

    #[test]
    fn a_row_of_another_width_is_an_error_taken_or_not() {
        let shape = shape();
        for take in [0, 1] {
            let mut rows = Rows::new(&shape, take);
            assert!(rows.add(&shape, &row(&[None, None])).is_err());
            assert!(rows.add(&shape, &row(&[None, None, None, None])).is_err());
        }
    }

    #[test]
    fn a_column_of_another_type_does_not_fit() {
        let described = |oids: [u32; 3]| {
            let mut body = 3u16.to_be_bytes().to_vec();
            for oid in oids {
                body.extend_from_slice(b"name\0\0\0\0\0\0\0");
                body.extend_from_slice(&oid.to_be_bytes());
                body.extend_from_slice(&[0; 8]);
            }
            body
        };
        assert_eq!(fit(&shape(), &described([23, 25, 16])), Ok(true));
        assert_eq!(fit(&shape(), &described([20, 25, 16])), Ok(false));
        assert_eq!(fit(&shape(), &described([23, 23, 16])), Ok(false));
        assert_eq!(fit(&shape(), &[0, 2]), Ok(false));
        assert!(fit(&shape(), &described([23, 25, 16])[..30]).is_err());
    }

    #[test]
    fn no_bytes_of_a_server_make_it_panic() {
        let shape = shape();
        proptest!(|(body in proptest::collection::vec(prop_oneof![Just(0u8), Just(3), Just(0xff), any::<u8>()], 0..64))| {
            let _row = Rows::new(&shape, 1).add(&shape, &body);
            let _description = fit(&shape, &body);
            let _key = crate::wire::exchange::key_statement::row(&body);
            let _error = crate::wire::failure::ServerError::parse(&body);
        });
    }
}
