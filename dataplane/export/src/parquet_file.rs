//! A Parquet file: rows are held in columns and written in row groups.

mod column;
mod decimal;
mod dictionary;
mod scalar;
mod schema;
mod strings;
mod write;

use std::io::Write;
use std::mem;

use parquet::file::writer::SerializedFileWriter;
use rowgate_pg::wire::Fields;

use self::column::{Fault, HeldColumn};
use crate::error::EncodeError;
use crate::sink::Counted;
use crate::{Column, Compression};

/// Of a row group. Readers work on one row group at a time and in parallel on several.
pub(crate) const MAX_ROWS: usize = 128 << 10;
/// What the columns of a row group hold together before they are encoded: most of what an export costs in memory.
pub(crate) const MAX_BYTES: usize = 8 << 20;

/// What a row may take while it is held: a `numeric` of ten bytes may have 131,072 digits.
const MAX_ROW: usize = 64 << 20;

pub(crate) struct ParquetFile<W: Write + Send> {
    columns: Vec<HeldColumn>,
    compression: Compression,
    /// Of the row group that is held.
    n_rows: usize,
    n_bytes: usize,
    output: Output<W>,
}

enum Output<W: Write + Send> {
    /// How values are encoded is decided when the first row group is there.
    Unopened(Counted<W>),
    Open(SerializedFileWriter<Counted<W>>),
    /// An error took the writer.
    Lost,
}

impl<W: Write + Send> ParquetFile<W> {
    pub(crate) fn new(
        columns: Vec<Column>,
        compression: Compression,
        into: W,
    ) -> Result<ParquetFile<W>, EncodeError> {
        let columns: Vec<_> = columns.into_iter().map(HeldColumn::new).collect();
        // what the names or types do not allow is said before there are rows
        schema::of(&columns)?;
        let output = Output::Unopened(Counted::new(into));
        Ok(ParquetFile { columns, compression, n_rows: 0, n_bytes: 0, output })
    }

    pub(crate) fn row(&mut self, fields: &mut Fields<'_>) -> Result<(), EncodeError> {
        let n_before = self.n_bytes;
        for column in &mut self.columns {
            if MAX_ROW < self.n_bytes - n_before {
                return Err(EncodeError::TooLong);
            }
            match column.push(fields.value()?) {
                Ok(n_bytes) => self.n_bytes += n_bytes,
                Err(Fault::TooLong) => return Err(EncodeError::TooLong),
                Err(Fault::Malformed(malformed)) => return Err(malformed.into()),
                Err(Fault::Unfit(reason)) => {
                    return Err(EncodeError::Unfit { column: column.name.clone(), reason });
                }
            }
        }
        self.n_rows += 1;
        if self.n_rows == MAX_ROWS || MAX_BYTES <= self.n_bytes {
            self.end_group()?;
        }
        Ok(())
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        match &self.output {
            Output::Unopened(into) => into.n_bytes(),
            Output::Open(writer) => writer.inner().n_bytes(),
            Output::Lost => 0,
        }
    }

    pub(crate) fn finish(mut self) -> Result<W, EncodeError> {
        if 0 < self.n_rows {
            self.end_group()?;
        }
        Ok(self.open()?.into_inner()?.into_inner())
    }

    /// Writes the rows that are held, and keeps the room for as many.
    fn end_group(&mut self) -> Result<(), EncodeError> {
        let mut writer = self.open()?;
        let mut group = writer.next_row_group()?;
        for column in &mut self.columns {
            let mut into = group.next_column()?.expect("the schema has the same columns");
            write::column(column, &mut into)?;
            into.close()?;
            column.clear();
        }
        group.close()?;
        self.output = Output::Open(writer);
        (self.n_rows, self.n_bytes) = (0, 0);
        // other columns than before may be the long ones
        if MAX_BYTES + MAX_BYTES / 2 < self.columns.iter().map(HeldColumn::n_kept).sum() {
            self.columns.iter_mut().for_each(HeldColumn::release);
        }
        Ok(())
    }

    fn open(&mut self) -> Result<SerializedFileWriter<Counted<W>>, EncodeError> {
        match mem::replace(&mut self.output, Output::Lost) {
            Output::Open(writer) => Ok(writer),
            Output::Unopened(into) => {
                let schema = schema::of(&self.columns)?;
                let properties = schema::properties(&self.columns, self.compression)?;
                Ok(SerializedFileWriter::new(into, schema, properties)?)
            }
            Output::Lost => Err(EncodeError::Ended),
        }
    }
}
