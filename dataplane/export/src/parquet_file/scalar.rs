//! The values of one column as Parquet stores them, and how they are read from PostgreSQL's wire format.

use rowgate_pg::wire::{Malformed, write_json};
use rowgate_sql::shape::Encoding;

use super::column::Fault;
use super::decimal::Decimal;
use super::strings::Strings;
use crate::error::Reason;

/// Days from 1970-01-01 to 2000-01-01, PostgreSQL's first day.
const EPOCH_DAYS: i32 = 10_957;
const DAY: i64 = 86_400_000_000;
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * DAY;

/// Values that are not NULL. Each variant but the last ones is a physical and a logical type of Parquet.
pub(super) enum Scalar {
    Bool(Vec<bool>),
    Int2(Vec<i32>),
    Int4(Vec<i32>),
    /// The bits of an unsigned number.
    Oid(Vec<i32>),
    /// Days since 1970-01-01.
    Date(Vec<i32>),
    Decimal32(Decimal, Vec<i32>),
    Int8(Vec<i64>),
    /// Microseconds since midnight.
    Time(Vec<i64>),
    /// Microseconds since 1970-01-01.
    Timestamp(Vec<i64>),
    TimestampTz(Vec<i64>),
    Decimal64(Decimal, Vec<i64>),
    Float4(Vec<f32>),
    Float8(Vec<f64>),
    /// 16 bytes each.
    Uuid(Strings),
    /// [`Decimal::n_bytes`] each.
    DecimalFixed(Decimal, Strings),
    Bytea(Strings),
    Text(Strings),
    /// The text that JSON has, without its quotes.
    Printed(Encoding, Strings),
    /// As JSON shows it.
    Json(Encoding, Strings),
}

impl Scalar {
    /// `modifier`: that of the column.
    pub(super) fn new(encoding: &Encoding, modifier: i32) -> Scalar {
        let strings = Strings::default();
        match encoding {
            Encoding::Bool => Scalar::Bool(Vec::new()),
            Encoding::Int2 => Scalar::Int2(Vec::new()),
            Encoding::Int4 => Scalar::Int4(Vec::new()),
            Encoding::Int8 => Scalar::Int8(Vec::new()),
            Encoding::Oid => Scalar::Oid(Vec::new()),
            Encoding::Float4 => Scalar::Float4(Vec::new()),
            Encoding::Float8 => Scalar::Float8(Vec::new()),
            Encoding::Numeric => match Decimal::of(modifier) {
                Some(decimal @ Decimal { precision: ..=9, .. }) => Scalar::Decimal32(decimal, Vec::new()),
                Some(decimal @ Decimal { precision: ..=18, .. }) => Scalar::Decimal64(decimal, Vec::new()),
                Some(decimal) => Scalar::DecimalFixed(decimal, strings),
                None => Scalar::Printed(Encoding::Numeric, strings),
            },
            Encoding::Uuid => Scalar::Uuid(strings),
            Encoding::Bytea => Scalar::Bytea(strings),
            Encoding::Date => Scalar::Date(Vec::new()),
            Encoding::Time => Scalar::Time(Vec::new()),
            Encoding::Timestamp => Scalar::Timestamp(Vec::new()),
            Encoding::TimestampTz => Scalar::TimestampTz(Vec::new()),
            Encoding::TimeTz | Encoding::Interval => Scalar::Printed(encoding.clone(), strings),
            Encoding::Text | Encoding::Quoted => Scalar::Text(strings),
            Encoding::Json | Encoding::Jsonb | Encoding::Nested(_) => Scalar::Json(encoding.clone(), strings),
        }
    }

    /// Adds a value that is in the format of its encoding; returns how many bytes it takes.
    #[inline]
    pub(super) fn push(&mut self, value: &[u8]) -> Result<usize, Fault> {
        match self {
            Scalar::Bool(values) => match value {
                [bit @ (0 | 1)] => values.push(*bit == 1),
                _ => return Err(Malformed("a boolean that is neither true nor false").into()),
            },
            Scalar::Int2(values) => values.push(i16::from_be_bytes(fixed(value)?).into()),
            Scalar::Int4(values) | Scalar::Oid(values) => values.push(i32::from_be_bytes(fixed(value)?)),
            Scalar::Date(values) => values.push(date(i32::from_be_bytes(fixed(value)?))?),
            Scalar::Decimal32(decimal, values) => {
                values.push(i32::try_from(decimal.read(value)?).expect("9 digits fit into 32 bits"));
            }
            Scalar::Int8(values) => values.push(i64::from_be_bytes(fixed(value)?)),
            Scalar::Time(values) => values.push(time(i64::from_be_bytes(fixed(value)?))?),
            Scalar::Timestamp(values) | Scalar::TimestampTz(values) => {
                values.push(timestamp(i64::from_be_bytes(fixed(value)?))?);
            }
            Scalar::Decimal64(decimal, values) => {
                values.push(i64::try_from(decimal.read(value)?).expect("18 digits fit into 64 bits"));
            }
            Scalar::Float4(values) => values.push(f32::from_be_bytes(fixed(value)?)),
            Scalar::Float8(values) => values.push(f64::from_be_bytes(fixed(value)?)),
            Scalar::Uuid(strings) => return Ok(strings.push(&fixed::<16>(value)?)),
            Scalar::DecimalFixed(decimal, strings) => {
                let units = decimal.read(value)?.to_be_bytes();
                return Ok(strings.push(&units[units.len() - decimal.n_bytes()..]));
            }
            Scalar::Bytea(strings) => return Ok(strings.push(value)),
            Scalar::Text(strings) => {
                str::from_utf8(value).map_err(|_| Malformed("text that is not UTF-8"))?;
                return Ok(strings.push(value));
            }
            Scalar::Printed(encoding, strings) => {
                return Ok(strings.push_made(true, |out| write_json(encoding, value, out))?);
            }
            Scalar::Json(encoding, strings) => {
                return Ok(strings.push_made(false, |out| write_json(encoding, value, out))?);
            }
        }
        Ok(self.width())
    }

    /// Bytes of each value, where all have as many; 0 where they have not.
    pub(super) fn width(&self) -> usize {
        match self {
            Scalar::Bool(_) => 1,
            Scalar::Int2(_) | Scalar::Int4(_) | Scalar::Oid(_) | Scalar::Date(_) | Scalar::Decimal32(..) => 4,
            Scalar::Int8(_) | Scalar::Time(_) | Scalar::Timestamp(_) | Scalar::TimestampTz(_) => 8,
            Scalar::Decimal64(..) | Scalar::Float8(_) => 8,
            Scalar::Float4(_) => 4,
            Scalar::Uuid(_) => 16,
            Scalar::DecimalFixed(decimal, _) => decimal.n_bytes(),
            Scalar::Bytea(_) | Scalar::Text(_) | Scalar::Printed(..) | Scalar::Json(..) => 0,
        }
    }

    /// Removes all values; those of bytes are gone already when they are written.
    pub(super) fn clear(&mut self) {
        match self {
            Scalar::Bool(values) => values.clear(),
            Scalar::Int2(values)
            | Scalar::Int4(values)
            | Scalar::Oid(values)
            | Scalar::Date(values)
            | Scalar::Decimal32(_, values) => values.clear(),
            Scalar::Int8(values)
            | Scalar::Time(values)
            | Scalar::Timestamp(values)
            | Scalar::TimestampTz(values)
            | Scalar::Decimal64(_, values) => values.clear(),
            Scalar::Float4(values) => values.clear(),
            Scalar::Float8(values) => values.clear(),
            Scalar::Uuid(strings)
            | Scalar::DecimalFixed(_, strings)
            | Scalar::Bytea(strings)
            | Scalar::Text(strings)
            | Scalar::Printed(_, strings)
            | Scalar::Json(_, strings) => drop(strings.take()),
        }
    }

    /// Bytes that the buffers keep when they are cleared.
    pub(super) fn n_kept(&self) -> usize {
        match self {
            Scalar::Bool(values) => values.capacity(),
            Scalar::Int2(values)
            | Scalar::Int4(values)
            | Scalar::Oid(values)
            | Scalar::Date(values)
            | Scalar::Decimal32(_, values) => 4 * values.capacity(),
            Scalar::Int8(values)
            | Scalar::Time(values)
            | Scalar::Timestamp(values)
            | Scalar::TimestampTz(values)
            | Scalar::Decimal64(_, values) => 8 * values.capacity(),
            Scalar::Float4(values) => 4 * values.capacity(),
            Scalar::Float8(values) => 8 * values.capacity(),
            Scalar::Uuid(_) | Scalar::DecimalFixed(..) => 0,
            Scalar::Bytea(_) | Scalar::Text(_) | Scalar::Printed(..) | Scalar::Json(..) => 0,
        }
    }
}

/// `days` since 2000-01-01.
fn date(days: i32) -> Result<i32, Fault> {
    match days {
        i32::MAX | i32::MIN => Err(Fault::Unfit(Reason::InfiniteDate)),
        _ => days.checked_add(EPOCH_DAYS).ok_or(Fault::Unfit(Reason::DateOutOfRange)),
    }
}

/// `micros` since 2000-01-01.
fn timestamp(micros: i64) -> Result<i64, Fault> {
    match micros {
        i64::MAX | i64::MIN => Err(Fault::Unfit(Reason::InfiniteTimestamp)),
        _ => micros.checked_add(EPOCH_MICROS).ok_or(Fault::Unfit(Reason::TimestampOutOfRange)),
    }
}

/// `micros` since midnight.
fn time(micros: i64) -> Result<i64, Fault> {
    match micros {
        0..DAY => Ok(micros),
        DAY => Err(Fault::Unfit(Reason::EndOfDay)),
        _ => Err(Malformed("a time outside its day").into()),
    }
}

fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N], Malformed> {
    value.try_into().map_err(|_| Malformed("a value whose length differs from its type"))
}
