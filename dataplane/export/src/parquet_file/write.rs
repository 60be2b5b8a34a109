//! The values of a column that is held, to the column of a row group.

use bytes::Bytes;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type,
};
use parquet::file::writer::SerializedColumnWriter;

use super::column::HeldColumn;
use super::scalar::Scalar;
use crate::error::EncodeError;

/// How many values of any length are named at once: each name takes 32 bytes.
const BATCH: usize = 1024;

/// Of one column.
#[derive(Clone, Copy)]
struct Levels<'a> {
    definition: &'a [i16],
    /// `None`: it is no list.
    repetition: Option<&'a [i16]>,
    /// Of a value that is not NULL.
    max_definition: i16,
}

/// Returns the buffer of the values where they are bytes: it is free once `into` is closed.
pub(super) fn column(
    column: &mut HeldColumn,
    into: &mut SerializedColumnWriter<'_>,
) -> Result<Bytes, EncodeError> {
    let levels = Levels {
        max_definition: column.max_definition(),
        definition: &column.definition,
        repetition: column.element.map(|_| &column.repetition[..]),
    };
    let width = column.values.width();
    match &mut column.values {
        Scalar::Bool(values) => whole::<BoolType>(values, levels, into),
        Scalar::Int2(values)
        | Scalar::Int4(values)
        | Scalar::Oid(values)
        | Scalar::Date(values)
        | Scalar::Decimal32(_, values) => whole::<Int32Type>(values, levels, into),
        Scalar::Int8(values)
        | Scalar::Time(values)
        | Scalar::Timestamp(values)
        | Scalar::TimestampTz(values)
        | Scalar::Decimal64(_, values) => whole::<Int64Type>(values, levels, into),
        Scalar::Float4(values) => whole::<FloatType>(values, levels, into),
        Scalar::Float8(values) => whole::<DoubleType>(values, levels, into),
        Scalar::Uuid(bytes) | Scalar::DecimalFixed(_, bytes) => {
            let bytes = Bytes::from(std::mem::take(bytes));
            sliced::<FixedLenByteArrayType>(&bytes, |i| (i + 1) * width, levels, into)?;
            Ok(bytes)
        }
        Scalar::Bytea(strings)
        | Scalar::Text(strings)
        | Scalar::Printed(_, strings)
        | Scalar::Json(_, strings) => {
            let bytes = Bytes::from(strings.take_bytes());
            sliced::<ByteArrayType>(&bytes, |i| strings.ends()[i], levels, into)?;
            Ok(bytes)
        }
    }
}

fn whole<T: DataType>(
    values: &[T::T],
    levels: Levels<'_>,
    into: &mut SerializedColumnWriter<'_>,
) -> Result<Bytes, EncodeError> {
    into.typed::<T>().write_batch(values, Some(levels.definition), levels.repetition)?;
    Ok(Bytes::new())
}

/// Values that lie behind each other in `bytes`; `end` says where.
fn sliced<T: DataType>(
    bytes: &Bytes,
    end: impl Fn(usize) -> usize,
    levels: Levels<'_>,
    into: &mut SerializedColumnWriter<'_>,
) -> Result<(), EncodeError>
where
    T::T: From<ByteArray>,
{
    let n_levels = levels.definition.len();
    let mut values: Vec<T::T> = Vec::with_capacity(BATCH);
    let (mut from, mut n_values, mut start) = (0, 0, 0);
    while from < n_levels {
        let mut to = n_levels.min(from + BATCH);
        if let Some(repetition) = levels.repetition {
            // a list is not cut
            to += repetition[to..].iter().take_while(|level| **level != 0).count();
        }
        let definition = &levels.definition[from..to];
        values.clear();
        for _ in definition.iter().filter(|level| **level == levels.max_definition) {
            let end = end(n_values);
            values.push(ByteArray::from(bytes.slice(start..end)).into());
            n_values += 1;
            start = end;
        }
        let repetition = levels.repetition.map(|repetition| &repetition[from..to]);
        into.typed::<T>().write_batch(&values, Some(definition), repetition)?;
        from = to;
    }
    Ok(())
}
