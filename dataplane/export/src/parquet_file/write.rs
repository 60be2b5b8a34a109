//! The values of a column that is held, to the column of a row group.

use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type,
};
use parquet::file::writer::SerializedColumnWriter;

use super::column::HeldColumn;
use super::scalar::Scalar;
use super::strings::Taken;
use crate::error::EncodeError;

/// How many values of bytes are named at once: each name takes 32 bytes.
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

/// Writes all values, and removes those of bytes.
pub(super) fn column(
    column: &mut HeldColumn,
    into: &mut SerializedColumnWriter<'_>,
) -> Result<(), EncodeError> {
    let levels = Levels {
        max_definition: column.max_definition(),
        definition: &column.definition,
        repetition: column.element.map(|_| &column.repetition[..]),
    };
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
        Scalar::Uuid(strings) | Scalar::DecimalFixed(_, strings) => {
            batches::<FixedLenByteArrayType>(strings.take(), levels, into)
        }
        Scalar::Bytea(strings)
        | Scalar::Text(strings)
        | Scalar::Printed(_, strings)
        | Scalar::Json(_, strings) => batches::<ByteArrayType>(strings.take(), levels, into),
    }
}

fn whole<T: DataType>(
    values: &[T::T],
    levels: Levels<'_>,
    into: &mut SerializedColumnWriter<'_>,
) -> Result<(), EncodeError> {
    into.typed::<T>().write_batch(values, Some(levels.definition), levels.repetition)?;
    Ok(())
}

fn batches<T: DataType>(
    mut values: Taken,
    levels: Levels<'_>,
    into: &mut SerializedColumnWriter<'_>,
) -> Result<(), EncodeError>
where
    T::T: From<ByteArray>,
{
    let n_levels = levels.definition.len();
    let mut batch: Vec<T::T> = Vec::with_capacity(BATCH);
    let mut from = 0;
    while from < n_levels {
        let mut to = n_levels.min(from + BATCH);
        if let Some(repetition) = levels.repetition {
            // a list is not cut
            to += repetition[to..].iter().take_while(|level| **level != 0).count();
        }
        let definition = &levels.definition[from..to];
        let n_values = definition.iter().filter(|level| **level == levels.max_definition).count();
        batch.clear();
        batch.extend(values.by_ref().take(n_values).map(|bytes| ByteArray::from(bytes).into()));
        let repetition = levels.repetition.map(|repetition| &repetition[from..to]);
        into.typed::<T>().write_batch(&batch, Some(definition), repetition)?;
        from = to;
    }
    Ok(())
}
