//! Arrays of one dimension become lists, other nested values JSON.

use std::sync::Arc;

use parquet::file::reader::FileReader as _;
use parquet::record::Field;
use parquet::schema::printer::print_schema;
use rowgate_sql::shape::{Body, Encoding, Nested, Part};
use rowgate_sql::text::Format;

use super::{array, array_of, column, composite, decimal, encode, numeric, parquet, reader};
use crate::{Column, FileFormat};

/// What is read back, as the reader prints it: texts in quotes, without escapes.
fn shown(column: Column, values: &[Option<&[u8]>]) -> Vec<String> {
    parquet(column, values).expect("a file").iter().map(Field::to_string).collect()
}

#[test]
fn lists_keep_nulls_at_every_level() {
    let one = |n: i32| n.to_be_bytes();
    let (seven, eight) = (one(7), one(8));
    let values = [
        array(23, &[Some(&seven), None, Some(&eight)]),
        array(23, &[]),
        array(23, &[None]),
        array(23, &[Some(&eight)]),
    ];
    let sent = [None, Some(&values[0][..]), Some(&values[1]), None, Some(&values[2]), Some(&values[3]), None];
    let column = column("a", array_of(23, Encoding::Int4));
    assert_eq!(shown(column, &sent), ["null", "[7, null, 8]", "[]", "null", "[null]", "[8]", "null"]);
}

#[test]
fn elements_have_types_of_their_own() {
    let texts = array(25, &[Some(b"a'b"), Some(b""), None]);
    let uuids = array(2950, &[Some(&[7; 16])]);
    let numbers = [numeric("1.5"), numeric("-20.25")];
    let decimals = array(1700, &[Some(&numbers[0]), None, Some(&numbers[1])]);
    let documents = array(3802, &[Some(b"\x01{\"a\": 1}")]);
    let flags = array(16, &[Some(&[1]), Some(&[0]), None]);
    let money = Column { encoding: array_of(1700, Encoding::Numeric), ..decimal(6, 2) };
    for (column, value, expected) in [
        (column("a", array_of(25, Encoding::Text)), &texts, "[\"a'b\", \"\", null]"),
        (
            column("a", array_of(2950, Encoding::Uuid)),
            &uuids,
            "[[7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]]",
        ),
        (column("a", array_of(3802, Encoding::Jsonb)), &documents, "[\"{\"a\": 1}\"]"),
        (column("a", array_of(16, Encoding::Bool)), &flags, "[true, false, null]"),
        (money, &decimals, "[1.50, null, -20.25]"),
    ] {
        assert_eq!(shown(column, &[Some(value), Some(value)]), [expected, expected]);
    }
}

#[test]
fn a_long_list_is_whole() {
    let texts: Vec<String> = (0..5000).map(|i| format!("text {i}")).collect();
    let elements: Vec<_> = texts.iter().map(|text| Some(text.as_bytes())).collect();
    let value = array(25, &elements);
    let few = array(25, &elements[..3]);
    let read =
        parquet(column("a", array_of(25, Encoding::Text)), &[Some(&few), Some(&value), Some(&few), None])
            .expect("a file");
    let lens = read.iter().map(|field| match field {
        Field::ListInternal(list) => Some(list.len()),
        _ => None,
    });
    assert_eq!(lens.collect::<Vec<_>>(), [Some(3), Some(5000), Some(3), None]);
    let Field::ListInternal(list) = &read[1] else { panic!("a list") };
    assert!(list.elements().iter().zip(&texts).all(|(field, text)| *field == Field::Str(text.clone())));
}

#[test]
fn arrays_of_other_types_are_json() {
    let pair = composite(Format::Binary, &[("x", 23, Encoding::Int4)]);
    let element = b"\0\0\0\x01\0\0\0\x17\0\0\0\x04\0\0\0\x07";
    let value = array(9, &[Some(element), None]);
    assert_eq!(shown(column("a", array_of(9, pair)), &[Some(&value)]), ["\"[{\"x\":7},null]\""]);
    let body = Body::Array { element: Part { oid: 600, encoding: Encoding::Quoted }, delimiter: b';' };
    let boxes = Encoding::Nested(Arc::new(Nested { oid: 1020, format: Format::Text, body }));
    assert_eq!(shown(column("a", boxes), &[Some(b"{1;NULL}")]), ["\"[\"1\",null]\""]);
}

#[test]
fn a_list_has_the_three_levels_that_readers_know() {
    let columns = vec![column("tags", array_of(25, Encoding::Text))];
    let reader = reader(encode(FileFormat::Parquet, columns, &[]).expect("a file"));
    let mut text = Vec::new();
    print_schema(&mut text, reader.metadata().file_metadata().schema());
    let expected = "message rowgate {\n  OPTIONAL group tags (LIST) {\n    REPEATED group list {\n      OPTIONAL BYTE_ARRAY \
        element (STRING);\n    }\n  }\n}\n";
    assert_eq!(String::from_utf8(text).expect("UTF-8"), expected);
}
