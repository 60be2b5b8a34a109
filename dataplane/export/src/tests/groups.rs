//! Row groups are cut by rows and by bytes, and dictionaries stand where values repeat.

use parquet::basic::Encoding as PageEncoding;
use parquet::file::reader::FileReader as _;
use rowgate_sql::shape::Encoding;

use super::{array, array_of, column, read, reader, row};
use crate::parquet_file::{MAX_BYTES, MAX_ROWS};
use crate::{Column, Compression, Encoder, FileFormat};

/// A Parquet file of so many rows.
fn file(columns: Vec<Column>, n_rows: usize, row: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut encoder =
        Encoder::new(FileFormat::Parquet, Compression::Zstd, columns, Vec::new()).expect("an encoder");
    for i in 0..n_rows {
        encoder.push(&row(i)).expect("a row");
    }
    encoder.finish().expect("a file")
}

/// How many rows each row group has.
fn groups(file: Vec<u8>) -> Vec<usize> {
    let reader = reader(file);
    reader.metadata().row_groups().iter().map(|group| group.num_rows() as usize).collect()
}

#[test]
fn a_row_group_is_cut_by_rows() {
    let narrow = |i: usize| row(&[Some(&(i as i32).to_be_bytes())]);
    let file = file(vec![column("a", Encoding::Int4)], MAX_ROWS + 5, narrow);
    assert_eq!(groups(file.clone()), [MAX_ROWS, 5]);
    let read = read(file);
    let is_next = |(i, fields): (usize, &Vec<_>)| fields[..] == [parquet::record::Field::Int(i as i32)];
    assert!(read.iter().enumerate().all(is_next));
}

#[test]
fn a_row_group_is_cut_by_bytes() {
    let text = "x".repeat(1 << 20);
    let wide = |_| row(&[Some(text.as_bytes())]);
    let n_rows = MAX_BYTES >> 20;
    assert_eq!(groups(file(vec![column("a", Encoding::Text)], 2 * n_rows + 1, wide)), [n_rows, n_rows, 1]);
    // escapes of JSON count as what they become
    let control = "\u{1}".repeat(1 << 20);
    let value = array(9, &[Some(&array(25, &[Some(control.as_bytes())]))]);
    let nested = array_of(9, array_of(25, Encoding::Text));
    assert_eq!(groups(file(vec![column("a", nested)], 5, |_| row(&[Some(&value)]))), [2, 2, 1]);
    // so do digits that PostgreSQL sends as a weight, and NULLs of lists
    let huge = [1, 0x7000, 0, 0, 1].into_iter().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let numerics = groups(file(vec![column("a", Encoding::Numeric)], 200, |_| row(&[Some(&huge)])));
    assert_eq!(numerics, [74, 74, 52]);
    let nulls = array(23, &vec![None; 1 << 20]);
    let lists = groups(file(vec![column("a", array_of(23, Encoding::Int4))], 7, |_| row(&[Some(&nulls)])));
    assert_eq!(lists, [2, 2, 2, 1]);
}

#[test]
fn the_long_column_may_change() {
    let text = "y".repeat(1 << 20);
    let rows = |i: usize| match i / 20 % 2 {
        0 => row(&[Some(text.as_bytes()), None]),
        _ => row(&[None, Some(text.as_bytes())]),
    };
    let columns = vec![column("a", Encoding::Text), column("b", Encoding::Bytea)];
    let read = read(file(columns, 80, rows));
    let is_null = |fields: &Vec<parquet::record::Field>| fields[0] == parquet::record::Field::Null;
    assert_eq!(read.iter().filter(|fields| is_null(fields)).count(), 40);
}

#[test]
fn dictionaries_are_for_values_that_repeat() {
    let columns = vec![
        column("low", Encoding::Text),
        column("high", Encoding::Text),
        column("few", Encoding::Int8),
        column("many", Encoding::Int8),
        column("id", Encoding::Uuid),
        column("tags", array_of(25, Encoding::Text)),
        column("flag", Encoding::Bool),
    ];
    let tags = array(25, &[Some(b"a"), Some(b"b")]);
    let rows = |i: usize| {
        let (low, high) = (format!("low {}", i % 10), format!("high {i}"));
        let (few, many) = ((i as i64 % 100).to_be_bytes(), (i as i64).to_be_bytes());
        let id = (i as u128).to_be_bytes();
        row(&[
            Some(low.as_bytes()),
            Some(high.as_bytes()),
            Some(&few),
            Some(&many),
            Some(&id),
            Some(&tags),
            Some(&[1]),
        ])
    };
    let reader = reader(file(columns, 2000, rows));
    let group = reader.metadata().row_group(0);
    let has_dictionary = |column: &parquet::file::metadata::ColumnChunkMetaData| {
        column.encodings().any(|e| e == PageEncoding::RLE_DICTIONARY)
    };
    let found: Vec<bool> = group.columns().iter().map(has_dictionary).collect();
    assert_eq!(found, [true, false, true, false, false, true, false]);
    assert!(group.columns().iter().all(|column| column.statistics().is_some()));
}
