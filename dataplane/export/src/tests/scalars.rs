//! Each type that is no list becomes the type that Parquet has for it.

use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::data_type::Decimal;
use parquet::file::reader::FileReader as _;
use parquet::record::Field;
use rowgate_sql::shape::Encoding;
use rowgate_sql::text::Format;

use super::{Value, column, composite, decimal, encode, numeric, parquet, read, reader};
use crate::{Column, FileFormat};

const DAY: i64 = 86_400_000_000;
const EPOCH: i64 = 10_957 * DAY;

/// Column, then pairs of what PostgreSQL sends and what is read back.
fn check(column: Column, values: &[(Vec<u8>, Field)]) {
    // a NULL before each value and after the last one
    let sent: Vec<Value<'_>> =
        values.iter().flat_map(|(value, _)| [None, Some(&value[..])]).chain([None]).collect();
    let expected: Vec<Field> =
        values.iter().flat_map(|(_, field)| [Field::Null, field.clone()]).chain([Field::Null]).collect();
    let name = format!("{:?} {}", column.encoding, column.modifier);
    assert_eq!(parquet(column, &sent).expect("a file"), expected, "{name}");
}

fn text(value: &str) -> Field {
    Field::Str(value.to_owned())
}

#[test]
fn numbers_keep_their_range() {
    let of = |encoding| column("a", encoding);
    check(of(Encoding::Bool), &[(vec![1], Field::Bool(true)), (vec![0], Field::Bool(false))]);
    let int2 = |n: i16| (n.to_be_bytes().to_vec(), Field::Short(n));
    check(of(Encoding::Int2), &[i16::MIN, -1, 0, i16::MAX].map(int2));
    let int4 = |n: i32| (n.to_be_bytes().to_vec(), Field::Int(n));
    check(of(Encoding::Int4), &[i32::MIN, -1, 0, i32::MAX].map(int4));
    let int8 = |n: i64| (n.to_be_bytes().to_vec(), Field::Long(n));
    check(of(Encoding::Int8), &[i64::MIN, -1, 0, i64::MAX].map(int8));
    let oid = |n: u32| (n.to_be_bytes().to_vec(), Field::UInt(n));
    check(of(Encoding::Oid), &[0, 1 << 31, u32::MAX].map(oid));
    let float4 = |n: f32| (n.to_be_bytes().to_vec(), Field::Float(n));
    check(of(Encoding::Float4), &[f32::MIN, -0.5, f32::MIN_POSITIVE, f32::INFINITY].map(float4));
    let float8 = |n: f64| (n.to_be_bytes().to_vec(), Field::Double(n));
    check(of(Encoding::Float8), &[f64::MIN, 0.1, f64::MAX, f64::NEG_INFINITY].map(float8));
    let nan = parquet(of(Encoding::Float8), &[Some(&f64::NAN.to_be_bytes())]).expect("a file");
    assert!(matches!(nan[..], [Field::Double(n)] if n.is_nan()));
}

#[test]
fn decimals_keep_every_digit() {
    fn units(precision: i32, scale: i32, units: i128) -> Field {
        let bytes = match precision {
            ..=9 => (units as i32).to_be_bytes().to_vec(),
            10..=18 => (units as i64).to_be_bytes().to_vec(),
            _ => {
                let n_bytes = (1..).find(|n| 10f64.powi(precision) < 2f64.powi(8 * n - 1)).unwrap();
                units.to_be_bytes()[16 - n_bytes as usize..].to_vec()
            }
        };
        Field::Decimal(match precision {
            ..=9 => Decimal::from_i32(units as i32, precision, scale),
            10..=18 => Decimal::from_i64(units as i64, precision, scale),
            _ => Decimal::from_bytes(bytes.into(), precision, scale),
        })
    }
    let digits = "12345678901234567890123456789012345678";
    for (precision, scale, value, expected) in [
        (5, 2, "123.45", 12_345),
        (5, 2, "-999.99", -99_999),
        (5, 2, "0", 0),
        (5, 2, "0.05", 5),
        (9, 0, "999999999", 999_999_999),
        (9, 9, "0.000000001", 1),
        (4, 0, "9000", 9_000),
        (18, 4, "-99999999999999.9999", -999_999_999_999_999_999),
        (10, 3, "1000000.5", 1_000_000_500),
        (19, 0, "9999999999999999999", 9_999_999_999_999_999_999),
        (20, 10, "-1.0000000001", -10_000_000_001),
        (38, 0, digits, digits.parse().unwrap()),
        (38, 0, "-99999999999999999999999999999999999999", -(10i128.pow(38) - 1)),
        (38, 2, "123456789012345678901234567890123456.78", digits.parse().unwrap()),
        (38, 37, "-1.2345678901234567890123456789012345678", -digits.parse::<i128>().unwrap()),
        (38, 38, "0.12345678901234567890123456789012345678", digits.parse().unwrap()),
        (38, 1, "1000000000000000000000000000000000000", 10i128.pow(37)),
    ] {
        check(decimal(precision, scale), &[(numeric(value), units(precision, scale, expected))]);
    }
}

#[test]
fn other_numerics_are_text() {
    let special = |sign: u16| [0, 0, sign, 0].into_iter().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let wide = format!("-1{}.50", "0".repeat(60));
    for column in [column("a", Encoding::Numeric), decimal(39, 2), decimal(3, 5), decimal(3, -2 & 0x7ff)] {
        let values = [
            (numeric("1.50"), text("1.50")),
            (numeric(&wide), text(&wide)),
            (special(0xc000), text("NaN")),
            (special(0xf000), text("-Infinity")),
        ];
        check(column, &values);
    }
}

#[test]
fn moments_count_from_1970() {
    let date = |days: i32, since_1970: i32| (days.to_be_bytes().to_vec(), Field::Date(since_1970));
    // from 4714 BC to 5874897 AD
    let days =
        [date(0, 10_957), date(-10_957, 0), date(-2_451_545, -2_440_588), date(2_145_031_948, 2_145_042_905)];
    check(column("a", Encoding::Date), &days);
    let time = |micros: i64| (micros.to_be_bytes().to_vec(), Field::TimeMicros(micros));
    check(column("a", Encoding::Time), &[0, 1, DAY - 1].map(time));
    let max = i64::MAX - EPOCH;
    let moment = |micros: i64| (micros.to_be_bytes().to_vec(), Field::TimestampMicros(micros + EPOCH));
    for encoding in [Encoding::Timestamp, Encoding::TimestampTz] {
        check(column("a", encoding), &[0, -EPOCH, -1, 500_000, -211_813_488_000_000_000, max].map(moment));
    }
    let timetz: Vec<u8> = 1_000_000i64.to_be_bytes().into_iter().chain((-7200i32).to_be_bytes()).collect();
    check(column("a", Encoding::TimeTz), &[(timetz, text("00:00:01+02"))]);
    let interval = [0u8, 0, 0, 0, 0, 0x1e, 0x84, 0x80, 0, 0, 0, 3, 0, 0, 0, 14].to_vec();
    check(column("a", Encoding::Interval), &[(interval, text("P1Y2M3DT2S"))]);
}

#[test]
fn text_and_bytes_stay_as_they_are() {
    let string = |value: &str| (value.as_bytes().to_vec(), text(value));
    let strings = ["", "a", "ä\n\"", "\u{10ffff}"].map(string);
    check(column("a", Encoding::Text), &strings);
    check(column("a", Encoding::Quoted), &strings);
    check(column("a", Encoding::Json), &["{\n\"a\": 1}", "null"].map(string));
    check(column("a", Encoding::Jsonb), &[(b"\x01{\"a\": 1}".to_vec(), text("{\"a\": 1}"))]);
    let bytes = |value: &[u8]| (value.to_vec(), Field::Bytes(value.to_vec().into()));
    check(column("a", Encoding::Bytea), &[bytes(b""), bytes(b"\0\xff")]);
    check(column("a", Encoding::Uuid), &[bytes(&[0; 16]), bytes(&[0xff; 16])]);
    let both = composite(Format::Binary, &[("x", 23, Encoding::Int4), ("y", 25, Encoding::Text)]);
    let value = b"\0\0\0\x02\0\0\0\x17\0\0\0\x04\0\0\0\x07\0\0\0\x19\xff\xff\xff\xff".to_vec();
    check(column("a", both), &[(value, text("{\"x\":7,\"y\":null}"))]);
    let quoted = composite(Format::Text, &[("x", 600, Encoding::Quoted)]);
    check(column("a", quoted), &[(b"(\"(1,2)\")".to_vec(), text("{\"x\":\"(1,2)\"}"))]);
}

#[test]
fn the_schema_names_the_types() {
    let (micros, utc) = (parquet::basic::TimeUnit::MICROS, true);
    let stamp = |utc| Some(LogicalType::timestamp(utc, micros));
    for (column, physical, length, logical) in [
        (column("a", Encoding::Int2), PhysicalType::INT32, -1, Some(LogicalType::integer(16, true))),
        (column("a", Encoding::Int4), PhysicalType::INT32, -1, None),
        (column("a", Encoding::Oid), PhysicalType::INT32, -1, Some(LogicalType::integer(32, false))),
        (column("a", Encoding::Int8), PhysicalType::INT64, -1, None),
        (column("a", Encoding::Time), PhysicalType::INT64, -1, Some(LogicalType::time(false, micros))),
        (column("a", Encoding::Timestamp), PhysicalType::INT64, -1, stamp(!utc)),
        (column("a", Encoding::TimestampTz), PhysicalType::INT64, -1, stamp(utc)),
        (column("a", Encoding::Uuid), PhysicalType::FIXED_LEN_BYTE_ARRAY, 16, Some(LogicalType::Uuid)),
        (column("a", Encoding::Jsonb), PhysicalType::BYTE_ARRAY, -1, Some(LogicalType::Json)),
        (column("a", Encoding::Bytea), PhysicalType::BYTE_ARRAY, -1, None),
        (column("a", Encoding::Interval), PhysicalType::BYTE_ARRAY, -1, Some(LogicalType::String)),
        (decimal(9, 3), PhysicalType::INT32, -1, Some(LogicalType::decimal(3, 9))),
        (decimal(18, 0), PhysicalType::INT64, -1, Some(LogicalType::decimal(0, 18))),
        (decimal(20, 20), PhysicalType::FIXED_LEN_BYTE_ARRAY, 9, Some(LogicalType::decimal(20, 20))),
        (decimal(38, 1), PhysicalType::FIXED_LEN_BYTE_ARRAY, 16, Some(LogicalType::decimal(1, 38))),
    ] {
        let reader = reader(encode(FileFormat::Parquet, vec![column], &[]).expect("a file"));
        let schema = reader.metadata().file_metadata().schema_descr();
        let leaf = schema.column(0);
        assert_eq!((leaf.physical_type(), leaf.type_length()), (physical, length), "{logical:?}");
        assert_eq!(leaf.logical_type_ref(), logical.as_ref());
        assert!(leaf.self_type().is_optional());
        assert_ne!(leaf.converted_type(), ConvertedType::ENUM);
        let maker = reader.metadata().file_metadata().created_by().expect("it says who made it");
        assert!(maker.starts_with("rowgate "), "{maker}");
    }
}

#[test]
fn a_file_without_rows_can_be_read() {
    let file = encode(FileFormat::Parquet, vec![column("a", Encoding::Int4)], &[]).expect("a file");
    assert_eq!(read(file), Vec::<Vec<Field>>::new());
}
