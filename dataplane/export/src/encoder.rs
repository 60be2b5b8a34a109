//! What takes chunks of rows apart and hands each row to its format.

use std::io::Write;

use rowgate_pg::wire::{Fields, Malformed};
use rowgate_sql::text::Format;

use crate::csv::Csv;
use crate::error::EncodeError;
use crate::json_lines::JsonLines;
use crate::parquet_file::ParquetFile;
use crate::{Column, Compression, FileFormat};

/// In which format each column must be asked for.
#[must_use]
pub fn formats(format: FileFormat, columns: &[Column]) -> Vec<Format> {
    let of_column = |column: &Column| match format {
        FileFormat::Csv { .. } => Format::Text,
        FileFormat::JsonLines | FileFormat::Parquet => column.encoding.format(),
    };
    columns.iter().map(of_column).collect()
}

/// Writes one file. It holds 64 KiB of text, or a row group of Parquet: 8 MiB, of which the last row may be the longest, with
/// 4 MiB to encode it. For the footer of a Parquet file it keeps 96 KiB for each column and GiB of rows.
pub struct Encoder<W: Write + Send> {
    n_columns: usize,
    n_rows: u64,
    has_failed: bool,
    file: File<W>,
}

enum File<W: Write + Send> {
    Csv(Csv<W>),
    JsonLines(JsonLines<W>),
    Parquet(Box<ParquetFile<W>>),
}

impl<W: Write + Send> Encoder<W> {
    /// Begins a file in `into`.
    ///
    /// # Errors
    ///
    /// There are no columns, or the sink refuses the beginning of the file.
    pub fn new(
        format: FileFormat,
        compression: Compression,
        columns: Vec<Column>,
        into: W,
    ) -> Result<Encoder<W>, EncodeError> {
        if columns.is_empty() {
            return Err(EncodeError::Malformed(Malformed("a result without columns")));
        }
        let n_columns = columns.len();
        let file = match format {
            FileFormat::Csv { safe } => File::Csv(Csv::new(&columns, safe, compression, into)?),
            FileFormat::JsonLines => File::JsonLines(JsonLines::new(columns, compression, into)?),
            FileFormat::Parquet => File::Parquet(Box::new(ParquetFile::new(columns, compression, into)?)),
        };
        Ok(Encoder { n_columns, n_rows: 0, has_failed: false, file })
    }

    /// Adds whole rows: of each its length as 32 bits, then the body of its DataRow, whose values are in the formats of
    /// [`formats`].
    ///
    /// # Errors
    ///
    /// See [`EncodeError`]. After one the file cannot be finished.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), EncodeError> {
        if self.has_failed {
            return Err(EncodeError::Ended);
        }
        let pushed = self.rows(chunk);
        self.has_failed = pushed.is_err();
        pushed
    }

    /// How many rows were added.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// How many bytes the sink has taken so far; some that were added may still be held.
    #[must_use]
    pub fn n_bytes(&self) -> u64 {
        match &self.file {
            File::Csv(csv) => csv.n_bytes(),
            File::JsonLines(lines) => lines.n_bytes(),
            File::Parquet(file) => file.n_bytes(),
        }
    }

    /// Writes what is held and the end of the file, and gives the flushed sink back.
    ///
    /// # Errors
    ///
    /// See [`EncodeError`]; [`EncodeError::Ended`] where a row was refused before.
    pub fn finish(self) -> Result<W, EncodeError> {
        if self.has_failed {
            return Err(EncodeError::Ended);
        }
        let mut into = match self.file {
            File::Csv(csv) => csv.finish()?,
            File::JsonLines(lines) => lines.finish()?,
            File::Parquet(file) => file.finish()?,
        };
        into.flush()?;
        Ok(into)
    }

    fn rows(&mut self, chunk: &[u8]) -> Result<(), EncodeError> {
        let mut rest = chunk;
        while let Some((len, behind)) = rest.split_first_chunk::<4>() {
            let len = u32::from_be_bytes(*len) as usize;
            let (body, behind) =
                behind.split_at_checked(len).ok_or(Malformed("a chunk that ends within a row"))?;
            rest = behind;
            self.row(body)?;
        }
        match rest {
            [] => Ok(()),
            _ => Err(Malformed("a chunk that ends within a length").into()),
        }
    }

    fn row(&mut self, body: &[u8]) -> Result<(), EncodeError> {
        let mut fields = Fields::of_row(body)?;
        if fields.n_values() != self.n_columns {
            return Err(Malformed("a row whose number of columns differs from its statement").into());
        }
        match &mut self.file {
            File::Csv(csv) => csv.row(&mut fields)?,
            File::JsonLines(lines) => lines.row(&mut fields)?,
            File::Parquet(file) => file.row(&mut fields)?,
        }
        if !fields.rest().is_empty() {
            return Err(Malformed("a row with data after its end").into());
        }
        self.n_rows += 1;
        Ok(())
    }
}
