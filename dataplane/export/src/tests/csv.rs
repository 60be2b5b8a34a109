//! CSV, byte for byte.

use rowgate_sql::shape::Encoding;
use rowgate_sql::text::Format;

use super::{Value, array_of, column, encode};
use crate::{Column, FileFormat, formats};

fn csv(safe: bool, columns: Vec<Column>, rows: &[Vec<Value<'_>>]) -> String {
    let file = encode(FileFormat::Csv { safe }, columns, rows).expect("a file");
    String::from_utf8(file).expect("UTF-8")
}

#[test]
fn every_column_is_asked_for_as_text() {
    let columns = [column("a", Encoding::Int4), column("b", array_of(23, Encoding::Int4))];
    assert_eq!(formats(FileFormat::Csv { safe: false }, &columns), [Format::Text, Format::Text]);
    assert_eq!(formats(FileFormat::Parquet, &columns), [Format::Binary, Format::Binary]);
    let columns = [column("a", Encoding::Quoted), column("b", Encoding::Jsonb)];
    assert_eq!(formats(FileFormat::JsonLines, &columns), [Format::Text, Format::Binary]);
}

#[test]
fn cells_are_quoted_where_they_must_be() {
    let columns = vec![column("id", Encoding::Int4), column("a \"b\", c", Encoding::Text)];
    let rows = [
        vec![Some(&b"1"[..]), Some(&b"plain text"[..])],
        vec![Some(b"-2"), Some(b"say \"yes\", please")],
        vec![Some(b"3"), Some(b"two\r\nlines")],
        vec![Some(b"4"), Some(b"\r")],
        vec![Some(b"5"), Some(b"")],
        vec![Some(b"6"), None],
        vec![None, Some(b"\"")],
        vec![Some(b"8"), Some("{\"ä\",NULL}".as_bytes())],
        vec![Some(b"9"), Some(b"\\.")],
        vec![Some(b"10"), Some(b"=1+1")],
    ];
    let expected = "id,\"a \"\"b\"\", c\"\r\n\
        1,plain text\r\n\
        -2,\"say \"\"yes\"\", please\"\r\n\
        3,\"two\r\nlines\"\r\n\
        4,\"\r\"\r\n\
        5,\"\"\r\n\
        6,\r\n\
        ,\"\"\"\"\r\n\
        8,\"{\"\"ä\"\",NULL}\"\r\n\
        9,\\.\r\n\
        10,=1+1\r\n";
    assert_eq!(csv(false, columns, &rows), expected);
}

#[test]
fn a_line_that_copy_takes_for_the_end_is_quoted() {
    let rows = [vec![Some(&b"\\."[..])], vec![None], vec![Some(b"")], vec![Some(b"\\.\\.")]];
    let text = csv(false, vec![column("\\.", Encoding::Text)], &rows);
    assert_eq!(text, "\"\\.\"\r\n\"\\.\"\r\n\r\n\"\"\r\n\\.\\.\r\n");
}

#[test]
fn a_file_without_rows_has_its_names() {
    assert_eq!(csv(true, vec![column("a", Encoding::Bool), column("=b", Encoding::Bool)], &[]), "a,'=b\r\n");
}

#[test]
fn safe_files_hold_no_formulas() {
    for (value, expected) in [
        ("=cmd()", "'=cmd()"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@a", "'@a"),
        ("\tx", "'\tx"),
        ("\rx", "\"'\rx\""),
        ("=a,\"b\"", "\"'=a,\"\"b\"\"\""),
        ("\u{ff1d}1", "'\u{ff1d}1"),
        ("\u{ff0b}1", "'\u{ff0b}1"),
        ("\u{ff0d}1", "'\u{ff0d}1"),
        ("\u{ff20}1", "'\u{ff20}1"),
        ("a=1", "a=1"),
        ("", "\"\""),
    ] {
        let text = csv(true, vec![column("a", Encoding::Text)], &[vec![Some(value.as_bytes())]]);
        assert_eq!(text, format!("a\r\n{expected}\r\n"));
    }
    use Encoding::{Float4, Float8, Int2, Int4, Int8, Numeric, Oid};
    for number in [Int2, Int4, Int8, Oid, Float4, Float8, Numeric] {
        let text = csv(true, vec![column("a", number)], &[vec![Some(b"-1")]]);
        assert_eq!(text, "a\r\n-1\r\n");
    }
}
