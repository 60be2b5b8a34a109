//! The types of a Parquet file, and how its pages are written.

use std::sync::Arc;

use parquet::basic::{self, GzipLevel, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::column::HeldColumn;
use super::decimal::Decimal;
use super::dictionary;
use super::scalar::Scalar;
use crate::Compression;
use crate::error::EncodeError;
use crate::sink::{GZIP_LEVEL, ZSTD_LEVEL};

/// Bytes before they are compressed: half of what the crate takes, which holds each page up to three times.
const PAGE: usize = 512 << 10;
/// Of the group that repeats, and of what is in it, as the format prescribes them for lists.
const LIST: &str = "list";
const ELEMENT: &str = "element";

/// A group of all columns, each of which may be NULL.
pub(super) fn of(columns: &[HeldColumn]) -> Result<TypePtr, EncodeError> {
    let fields: Result<Vec<TypePtr>, EncodeError> = columns.iter().map(column).collect();
    Ok(Arc::new(Type::group_type_builder("rowgate").with_fields(fields?).build()?))
}

/// The first row group is held: its values say which columns get a dictionary.
pub(super) fn properties(
    columns: &[HeldColumn],
    compression: Compression,
) -> Result<WriterPropertiesPtr, EncodeError> {
    let codec = match compression {
        Compression::None => basic::Compression::UNCOMPRESSED,
        Compression::Gzip => basic::Compression::GZIP(GzipLevel::try_new(GZIP_LEVEL)?),
        Compression::Zstd => basic::Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?),
    };
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("rowgate ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(codec)
        .set_data_page_size_limit(PAGE)
        // what stands in the footer for each page is held to the end of the file
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for column in columns {
        let has_dictionary = dictionary::is_worth_it(&column.values);
        properties = properties.set_column_dictionary_enabled(path(column), has_dictionary);
    }
    Ok(Arc::new(properties.build()))
}

fn path(column: &HeldColumn) -> ColumnPath {
    let name = column.name.clone();
    ColumnPath::new(match column.element {
        None => vec![name],
        Some(_) => vec![name, LIST.to_owned(), ELEMENT.to_owned()],
    })
}

fn column(column: &HeldColumn) -> Result<TypePtr, EncodeError> {
    if column.element.is_none() {
        return scalar(&column.name, &column.values);
    }
    let element = scalar(ELEMENT, &column.values)?;
    let repeated = Type::group_type_builder(LIST)
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![element])
        .build()?;
    let list = Type::group_type_builder(&column.name)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(repeated)])
        .build()?;
    Ok(Arc::new(list))
}

fn scalar(name: &str, values: &Scalar) -> Result<TypePtr, EncodeError> {
    let micros = TimeUnit::MICROS;
    let of = |decimal: &Decimal| LogicalType::decimal(decimal.scale.into(), decimal.precision.into());
    let (physical, logical) = match values {
        Scalar::Bool(_) => (PhysicalType::BOOLEAN, None),
        Scalar::Int2(_) => (PhysicalType::INT32, Some(LogicalType::integer(16, true))),
        Scalar::Int4(_) => (PhysicalType::INT32, None),
        Scalar::Oid(_) => (PhysicalType::INT32, Some(LogicalType::integer(32, false))),
        Scalar::Date(_) => (PhysicalType::INT32, Some(LogicalType::Date)),
        Scalar::Decimal32(decimal, _) => (PhysicalType::INT32, Some(of(decimal))),
        Scalar::Int8(_) => (PhysicalType::INT64, None),
        Scalar::Time(_) => (PhysicalType::INT64, Some(LogicalType::time(false, micros))),
        Scalar::Timestamp(_) => (PhysicalType::INT64, Some(LogicalType::timestamp(false, micros))),
        Scalar::TimestampTz(_) => (PhysicalType::INT64, Some(LogicalType::timestamp(true, micros))),
        Scalar::Decimal64(decimal, _) => (PhysicalType::INT64, Some(of(decimal))),
        Scalar::Float4(_) => (PhysicalType::FLOAT, None),
        Scalar::Float8(_) => (PhysicalType::DOUBLE, None),
        Scalar::Uuid(_) => (PhysicalType::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid)),
        Scalar::DecimalFixed(decimal, _) => (PhysicalType::FIXED_LEN_BYTE_ARRAY, Some(of(decimal))),
        Scalar::Bytea(_) => (PhysicalType::BYTE_ARRAY, None),
        Scalar::Text(_) | Scalar::Printed(..) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        Scalar::Json(..) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::Json)),
    };
    let mut builder = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    if physical == PhysicalType::FIXED_LEN_BYTE_ARRAY {
        builder = builder.with_length(values.width() as i32);
    }
    if let Scalar::Decimal32(decimal, _) | Scalar::Decimal64(decimal, _) | Scalar::DecimalFixed(decimal, _) =
        values
    {
        builder = builder.with_precision(decimal.precision.into()).with_scale(decimal.scale.into());
    }
    Ok(Arc::new(builder.build()?))
}
