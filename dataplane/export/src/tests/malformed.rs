//! Rows that are not as PostgreSQL sends them are errors, and no bytes make an encoder panic.

use proptest::prelude::*;
use rowgate_sql::shape::Encoding;
use rowgate_sql::text::Format;

use super::{array, array_of, column, composite, decimal, numeric, row};
use crate::{Column, Compression, EncodeError, Encoder, FileFormat};

const FORMATS: [FileFormat; 3] = [FileFormat::Csv { safe: true }, FileFormat::JsonLines, FileFormat::Parquet];

fn push(format: FileFormat, columns: Vec<Column>, chunk: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder::new(format, Compression::None, columns, Vec::new())?;
    encoder.push(chunk)?;
    encoder.finish()
}

#[test]
fn a_row_that_is_cut_or_too_long_is_an_error() {
    let columns = || vec![column("a", Encoding::Text), column("b", array_of(25, Encoding::Text))];
    let whole = row(&[Some(b"text"), Some(&array(25, &[Some(b"a"), None]))]);
    for format in FORMATS {
        assert!(push(format, columns(), &whole).is_ok());
        for end in 1..whole.len() {
            let cut = push(format, columns(), &whole[..end]);
            assert!(matches!(cut, Err(EncodeError::Malformed(_))), "{format:?} {end}");
            // the row itself says that it ends early
            if 4 <= end {
                let mut shorter = whole[..end].to_vec();
                shorter[..4].copy_from_slice(&(end as u32 - 4).to_be_bytes());
                let cut = push(format, columns(), &shorter);
                assert!(matches!(cut, Err(EncodeError::Malformed(_))), "{format:?} {end}");
            }
        }
        for wrong in [
            row(&[Some(b"text")]),
            row(&[Some(b"text"), None, None]),
            b"\0\0\0\x06\0\x02\xff\xff\xff\xfe".to_vec(),
            b"\0\0\0\x0b\0\x02\xff\xff\xff\xff\xff\xff\xff\xff\0".to_vec(),
            b"\0\0\0\0".to_vec(),
            b"\xff\xff\xff\xff".to_vec(),
        ] {
            let refused = push(format, columns(), &wrong);
            assert!(matches!(refused, Err(EncodeError::Malformed(_))), "{format:?} {wrong:?}");
        }
    }
}

#[test]
fn text_that_is_not_utf8_is_an_error() {
    for format in [FileFormat::JsonLines, FileFormat::Parquet] {
        let refused = push(format, vec![column("a", Encoding::Text)], &row(&[Some(b"\xff")]));
        assert!(matches!(refused, Err(EncodeError::Malformed(_))));
    }
}

#[test]
fn there_is_no_file_without_columns() {
    for format in FORMATS {
        let refused = Encoder::new(format, Compression::None, Vec::new(), Vec::new());
        assert!(matches!(refused, Err(EncodeError::Malformed(_))));
    }
}

#[test]
fn after_an_error_there_is_no_file() {
    for format in FORMATS {
        let columns = vec![column("a", Encoding::Int4)];
        let mut encoder = Encoder::new(format, Compression::None, columns, Vec::new()).expect("an encoder");
        let good = row(&[Some(b"\0\0\0\x01")]);
        encoder.push(&good).expect("a row");
        encoder.push(b"\0").expect_err("no row");
        assert!(matches!(encoder.push(&good), Err(EncodeError::Ended)));
        assert_eq!(encoder.n_rows(), 1);
        assert!(matches!(encoder.finish(), Err(EncodeError::Ended)));
    }
}

fn all() -> Vec<Column> {
    use Encoding::{
        Bool, Bytea, Date, Float4, Float8, Int2, Int4, Int8, Interval, Json, Jsonb, Numeric, Oid,
    };
    use Encoding::{Quoted, Text, Time, TimeTz, Timestamp, TimestampTz, Uuid};
    let scalars = [
        Bool,
        Int2,
        Int4,
        Int8,
        Oid,
        Float4,
        Float8,
        Numeric,
        Text,
        Uuid,
        Bytea,
        Date,
        Time,
        TimeTz,
        Timestamp,
        TimestampTz,
        Interval,
        Json,
        Jsonb,
        Quoted,
    ];
    let lists = [array_of(0, Int4), array_of(0, Text), array_of(0, Numeric)];
    let nested = composite(Format::Binary, &[("x", 0, Int4), ("y", 0, array_of(0, Int4))]);
    let columns = scalars.into_iter().chain(lists).chain([nested]);
    columns
        .map(|encoding| column("a", encoding))
        .chain([decimal(5, 2), decimal(18, 9), decimal(38, 38)])
        .collect()
}

#[test]
fn no_bytes_make_it_panic() {
    let value = (0..40usize).prop_flat_map(|len| {
        // Bytes that are all ones or zeros are the ends of every range.
        let byte =
            prop_oneof![Just(0u8), Just(0u8), Just(1u8), Just(0xff), Just(0x7f), Just(0x80), any::<u8>()];
        proptest::collection::vec(byte, len)
    });
    proptest!(ProptestConfig::with_cases(1_000), |(value in value)| {
        for format in FORMATS {
            for column in all() {
                let _ = push(format, vec![column.clone()], &row(&[Some(&value), None])[..]);
                let _ = push(format, vec![column.clone()], &row(&[Some(&value)]));
                let _ = push(format, vec![column], &value);
            }
        }
    });
}

#[test]
fn values_that_are_cut_make_no_panic() {
    let numbers = column("a", array_of(23, Encoding::Int4));
    for (columns, value) in [
        (vec![decimal(5, 2), decimal(38, 10)], numeric("123.45")),
        (vec![decimal(5, 4), decimal(38, 10)], numeric("-0.0001")),
        (vec![numbers], array(23, &[Some(b"\0\0\0\x01"), None])),
    ] {
        for end in 0..value.len() {
            for column in &columns {
                let cut = push(FileFormat::Parquet, vec![column.clone()], &row(&[Some(&value[..end])]));
                assert!(matches!(cut, Err(EncodeError::Malformed(_))), "{end} of {value:?}");
            }
        }
    }
}
