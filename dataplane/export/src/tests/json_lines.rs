//! JSON lines, byte for byte.

use rowgate_sql::shape::Encoding;
use rowgate_sql::text::Format;

use super::{Value, array, array_of, column, composite, encode, numeric};
use crate::{Column, FileFormat};

fn lines(columns: Vec<Column>, rows: &[Vec<Value<'_>>]) -> String {
    let file = encode(FileFormat::JsonLines, columns, rows).expect("a file");
    String::from_utf8(file).expect("UTF-8")
}

#[test]
fn a_row_is_an_object_in_a_line() {
    let columns = vec![
        column("id", Encoding::Int8),
        column("a \"name\"", Encoding::Text),
        column("price", Encoding::Numeric),
        column("at", Encoding::TimestampTz),
        column("tags", array_of(25, Encoding::Text)),
    ];
    let (price, tags) = (numeric("-12.340"), array(25, &[Some(b"a\nb"), None]));
    let rows = [
        vec![
            Some(&[0, 0, 0, 0, 0, 0, 0, 7][..]),
            Some(b"\"\n"),
            Some(&price[..]),
            Some(&[0; 8]),
            Some(&tags),
        ],
        vec![None; 5],
    ];
    let expected = concat!(
        r#"{"id":7,"a \"name\"":"\"\n","price":-12.340,"at":"2000-01-01T00:00:00Z","tags":["a\nb",null]}"#,
        "\n",
        r#"{"id":null,"a \"name\"":null,"price":null,"at":null,"tags":null}"#,
        "\n"
    );
    assert_eq!(lines(columns, &rows), expected);
    assert_eq!(lines(vec![column("a", Encoding::Bool)], &[]), "");
}

#[test]
fn json_of_several_lines_becomes_one() {
    let stored = b"{\n  \"a\":\r\n\t\"b\\n\"\n}";
    let within = composite(Format::Text, &[("j", 114, Encoding::Json), ("q", 600, Encoding::Quoted)]);
    let columns = vec![column("a", Encoding::Json), column("b", within)];
    let row = vec![Some(&stored[..]), Some(&b"(\"[1,\n2]\",x)"[..])];
    let expected = "{\"a\":{   \"a\":  \t\"b\\n\" },\"b\":{\"j\":[1, 2],\"q\":\"x\"}}\n";
    assert_eq!(lines(columns, &[row]), expected);
}
