//! Why a file could not be written.

use std::fmt;
use std::io;

use parquet::errors::ParquetError;
use rowgate_pg::wire::{Malformed, Unwritten};

/// Why a file could not be written to its end. What the sink has taken until then is of no use.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The sink refuses bytes.
    #[error("the file could not be written: {0}")]
    Io(#[from] io::Error),
    /// The rows do not have the form that PostgreSQL gives them.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A value that the file format cannot hold. The text is for the one who asked for the file.
    #[error("the column \"{column}\" holds {reason}")]
    Unfit { column: String, reason: Reason },
    /// A row is too long. The text is for the one who asked for the file.
    #[error("a row is longer than 64 MiB in this format; export fewer columns, or shorten them in a query")]
    TooLong,
    /// The columns cannot become a Parquet file; the text is for the log.
    #[error("the Parquet file could not be written: {0}")]
    Parquet(String),
    /// An earlier error ended the file.
    #[error("an earlier error ended this file")]
    Ended,
}

/// What a column holds that Parquet cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// `infinity` or `-infinity` in a date.
    InfiniteDate,
    /// `infinity` or `-infinity` in a timestamp.
    InfiniteTimestamp,
    /// A date beyond the days that 32 bits count from 1970.
    DateOutOfRange,
    /// A timestamp beyond the microseconds that 64 bits count from 1970.
    TimestampOutOfRange,
    /// The end of a day, `24:00:00`.
    EndOfDay,
    /// `NaN` in a numeric of a fixed precision.
    NotANumber,
    /// `Infinity` or `-Infinity` in a numeric of a fixed precision.
    InfiniteNumber,
    /// More digits than the precision and scale of its column say.
    TooManyDigits,
    /// An array of more than one dimension.
    Dimensions,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, holder) = match self {
            Reason::InfiniteDate => ("infinity", "a Parquet date"),
            Reason::InfiniteTimestamp => ("infinity", "a Parquet timestamp"),
            Reason::DateOutOfRange => ("a date that is too far from 1970", "a Parquet date"),
            Reason::TimestampOutOfRange => ("a timestamp that is too far from 1970", "a Parquet timestamp"),
            Reason::EndOfDay => ("24:00:00", "a Parquet time"),
            Reason::NotANumber => ("NaN", "a Parquet decimal"),
            Reason::InfiniteNumber => ("infinity", "a Parquet decimal"),
            Reason::TooManyDigits => {
                ("a number with more digits than its type declares", "a Parquet decimal")
            }
            Reason::Dimensions => ("an array of several dimensions", "a Parquet list"),
        };
        write!(
            f,
            "{what}, which {holder} cannot hold; export a query that casts it to text, or use another format"
        )
    }
}

impl From<ParquetError> for EncodeError {
    fn from(error: ParquetError) -> EncodeError {
        match error {
            ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(error) => EncodeError::Io(*error),
                Err(cause) => EncodeError::Parquet(cause.to_string()),
            },
            error => EncodeError::Parquet(error.to_string()),
        }
    }
}

impl From<Unwritten> for EncodeError {
    fn from(unwritten: Unwritten) -> EncodeError {
        match unwritten {
            Unwritten::Malformed(malformed) => malformed.into(),
            Unwritten::TooLong => EncodeError::TooLong,
        }
    }
}
