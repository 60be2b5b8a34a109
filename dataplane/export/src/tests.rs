//! Rows of which files are made, and files that are read back.

mod csv;
mod groups;
mod json_lines;
mod lists;
mod malformed;
mod scalars;
mod sinks;
mod unfit;

use std::sync::Arc;

use bytes::Bytes;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use rowgate_sql::shape::{Attribute, Body, Encoding, Nested, Part, label};
use rowgate_sql::text::Format;

use crate::{Column, Compression, EncodeError, Encoder, FileFormat};

type Value<'a> = Option<&'a [u8]>;

fn column(name: &str, encoding: Encoding) -> Column {
    Column { name: name.to_owned(), encoding, modifier: -1 }
}

fn decimal(precision: i32, scale: i32) -> Column {
    Column { modifier: (precision << 16 | scale) + 4, ..column("d", Encoding::Numeric) }
}

/// One row of a chunk.
fn row(values: &[Value<'_>]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        sized(*value, &mut body);
    }
    let mut row = (body.len() as u32).to_be_bytes().to_vec();
    row.extend(body);
    row
}

fn sized(value: Value<'_>, out: &mut Vec<u8>) {
    out.extend(value.map_or(-1, |value| value.len() as i32).to_be_bytes());
    out.extend(value.unwrap_or_default());
}

/// All rows in one chunk.
fn encode(format: FileFormat, columns: Vec<Column>, rows: &[Vec<Value<'_>>]) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder::new(format, Compression::None, columns, Vec::new())?;
    let chunk: Vec<u8> = rows.iter().flat_map(|values| row(values)).collect();
    encoder.push(&chunk)?;
    assert_eq!(encoder.n_rows(), rows.len() as u64);
    encoder.finish()
}

fn reader(file: Vec<u8>) -> SerializedFileReader<Bytes> {
    SerializedFileReader::new(Bytes::from(file)).expect("a Parquet file")
}

/// The values of each row.
fn read(file: Vec<u8>) -> Vec<Vec<Field>> {
    let reader = reader(file);
    let rows = reader.get_row_iter(None).expect("rows");
    let fields = |row: parquet::record::Row| row.into_columns().into_iter().map(|(_, field)| field).collect();
    rows.map(|row| fields(row.expect("a row"))).collect()
}

/// A column of these values, as Parquet.
fn parquet(column: Column, values: &[Value<'_>]) -> Result<Vec<Field>, EncodeError> {
    let rows: Vec<_> = values.iter().map(|value| vec![*value]).collect();
    let file = encode(FileFormat::Parquet, vec![column], &rows)?;
    Ok(read(file).into_iter().flatten().collect())
}

/// The binary form of a `numeric` that is written with digits alone.
pub(crate) fn numeric(text: &str) -> Vec<u8> {
    let (sign, text) = text.strip_prefix('-').map_or((0u16, text), |text| (0x4000, text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = format!("{}{whole}", "0".repeat((4 - whole.len() % 4) % 4));
    let padded = format!("{whole}{fraction}{}", "0".repeat((4 - fraction.len() % 4) % 4));
    let mut digits: Vec<u16> =
        padded.as_bytes().chunks(4).map(|four| str::from_utf8(four).unwrap().parse().unwrap()).collect();
    let mut weight = whole.len() as i16 / 4 - 1;
    while digits.first() == Some(&0) {
        digits.remove(0);
        weight -= 1;
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
    let header = [digits.len() as u16, weight as u16, sign, fraction.len() as u16];
    header.into_iter().chain(digits).flat_map(u16::to_be_bytes).collect()
}

fn array_of(oid: u32, encoding: Encoding) -> Encoding {
    let body = Body::Array { element: Part { oid, encoding }, delimiter: b',' };
    Encoding::Nested(Arc::new(Nested { oid: 1, format: Format::Binary, body }))
}

fn composite(format: Format, attributes: &[(&str, u32, Encoding)]) -> Encoding {
    let attribute = |(name, oid, encoding): &(&str, u32, Encoding)| Attribute {
        label: label(name),
        part: Part { oid: *oid, encoding: encoding.clone() },
    };
    let body = Body::Composite(attributes.iter().map(attribute).collect());
    Encoding::Nested(Arc::new(Nested { oid: 2, format, body }))
}

/// The binary form of an array of one dimension, or of none.
fn array(oid: u32, elements: &[Value<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(i32::from(!elements.is_empty()).to_be_bytes());
    out.extend(0i32.to_be_bytes());
    out.extend(oid.to_be_bytes());
    if !elements.is_empty() {
        out.extend((elements.len() as i32).to_be_bytes());
        out.extend(1i32.to_be_bytes());
        elements.iter().for_each(|element| sized(*element, &mut out));
    }
    out
}
