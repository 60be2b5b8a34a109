//! One value of PostgreSQL's wire format to JSON, written as PostgreSQL itself prints it.

mod binary;
mod float;
mod literal;
mod numeric;
mod printed;
mod text;
mod time;

use rowgate_sql::shape::Encoding;
use rowgate_sql::text::Format;

use crate::wire::failure::{Malformed, Unwritten};

/// The first byte of a jsonb.
const JSONB_VERSION: u8 = 1;

/// What `out` may have grown to before a value is added: a row as JSON, and what was not handed over before it.
const MAX_LEN: usize = 64 << 20;

/// Appends `value`, which is in the format of [`Encoding::format`], to `out`.
///
/// # Errors
///
/// The bytes are no value of that type, or `out` would grow beyond 64 MiB by far. What was appended until then stays.
pub fn write(encoding: &Encoding, value: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritten> {
    if MAX_LEN < out.len() {
        return Err(Unwritten::TooLong);
    }
    match encoding {
        Encoding::Bool => match value {
            [0] => out.extend_from_slice(b"false"),
            [1] => out.extend_from_slice(b"true"),
            _ => return Err(Malformed("a boolean that is neither true nor false").into()),
        },
        Encoding::Int2 => integer(i16::from_be_bytes(fixed(value)?), out),
        Encoding::Int4 => integer(i32::from_be_bytes(fixed(value)?), out),
        Encoding::Int8 => integer(i64::from_be_bytes(fixed(value)?), out),
        Encoding::Oid => integer(u32::from_be_bytes(fixed(value)?), out),
        Encoding::Float4 => float::write4(f32::from_be_bytes(fixed(value)?), out),
        Encoding::Float8 => float::write8(f64::from_be_bytes(fixed(value)?), out),
        Encoding::Numeric => numeric::write(value, out)?,
        Encoding::Text | Encoding::Quoted => text::quoted(value, out)?,
        Encoding::Uuid => text::uuid(fixed(value)?, out),
        Encoding::Bytea => text::base64(value, out),
        Encoding::Date => time::date(i32::from_be_bytes(fixed(value)?), out),
        Encoding::Time => time::time(i64::from_be_bytes(fixed(value)?), out)?,
        Encoding::TimeTz => time::time_tz(fixed(value)?, out)?,
        Encoding::Timestamp => time::timestamp(i64::from_be_bytes(fixed(value)?), "", out),
        Encoding::TimestampTz => time::timestamp(i64::from_be_bytes(fixed(value)?), "Z", out),
        Encoding::Interval => time::interval(fixed(value)?, out),
        Encoding::Json => out.extend_from_slice(text::utf8(value)?),
        Encoding::Jsonb => match value {
            [JSONB_VERSION, value @ ..] => out.extend_from_slice(text::utf8(value)?),
            _ => return Err(Malformed("a jsonb of an unknown version").into()),
        },
        Encoding::Nested(nested) => match nested.format {
            Format::Binary => binary::nested(nested, value, out)?,
            Format::Text => literal::nested(nested, value, out)?,
        },
    }
    Ok(())
}

/// Whether PostgreSQL's type `oid` has the wire format that `encoding` reads.
pub(crate) fn fits(encoding: &Encoding, oid: u32) -> bool {
    /// Types that an extension or a user made have greater numbers.
    const FIRST_OF_USERS: u32 = 16384;
    match encoding {
        Encoding::Bool => oid == 16,
        Encoding::Int2 => oid == 21,
        Encoding::Int4 => oid == 23,
        Encoding::Int8 => oid == 20,
        Encoding::Oid => oid == 26,
        Encoding::Float4 => oid == 700,
        Encoding::Float8 => oid == 701,
        Encoding::Numeric => oid == 1700,
        Encoding::Text => matches!(oid, 19 | 25 | 1042 | 1043) || FIRST_OF_USERS <= oid,
        Encoding::Uuid => oid == 2950,
        Encoding::Bytea => oid == 17,
        Encoding::Date => oid == 1082,
        Encoding::Time => oid == 1083,
        Encoding::TimeTz => oid == 1266,
        Encoding::Timestamp => oid == 1114,
        Encoding::TimestampTz => oid == 1184,
        Encoding::Interval => oid == 1186,
        Encoding::Json => oid == 114,
        Encoding::Jsonb => oid == 3802,
        Encoding::Nested(nested) => oid == nested.oid,
        // Asked for as text, which every type has.
        Encoding::Quoted => true,
    }
}

fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N], Malformed> {
    value.try_into().map_err(|_| Malformed("a value whose length differs from its type"))
}

fn integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends `number` with at least two digits.
fn two_digits(number: u32, out: &mut Vec<u8>) {
    if number < 10 {
        out.push(b'0');
    }
    integer(number, out);
}

#[cfg(test)]
mod nested_tests;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(encoding: &Encoding, value: &[u8]) -> Option<String> {
        let mut out = Vec::new();
        write(encoding, value, &mut out).ok()?;
        Some(String::from_utf8(out).expect("JSON is UTF-8"))
    }

    #[test]
    fn bytes_become_json() {
        use Encoding::{
            Bool, Bytea, Float4, Int2, Int4, Int8, Json, Numeric, Oid, Quoted, Text, TimeTz, Uuid,
        };
        for (encoding, value, expected) in [
            (Bool, &b"\x01"[..], "true"),
            (Int2, b"\xff\xfe", "-2"),
            (Int4, b"\x80\0\0\0", "-2147483648"),
            (Int8, b"\x7f\xff\xff\xff\xff\xff\xff\xff", "9223372036854775807"),
            (Oid, b"\xff\xff\xff\xff", "4294967295"),
            (Float4, b"\x3f\x80\0\0", "1"),
            (Float4, b"\x7f\xc0\0\0", "\"NaN\""),
            (Numeric, b"\0\x01\0\0\x40\0\0\x02\0\x0c", "-12.00"),
            (Numeric, b"\0\0\0\0\xc0\0\0\0", "\"NaN\""),
            (Text, b"a\"\\\n\x01\x7f\xc3\xa4", "\"a\\\"\\\\\\n\\u0001\x7f\u{e4}\""),
            (Quoted, b"{1,\"x\"}", "\"{1,\\\"x\\\"}\""),
            (Json, b"{\"a\": 1}", "{\"a\": 1}"),
            (Bytea, b"\0\xff", "\"AP8=\""),
            (
                Uuid,
                b"\0\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff",
                "\"00112233-4455-6677-8899-aabbccddeeff\"",
            ),
            (TimeTz, b"\0\0\0\0\0\0\0\0\0\0\0\0", "\"00:00:00+00\""),
        ] {
            assert_eq!(json(&encoding, value).as_deref(), Some(expected), "{encoding:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_value_are_refused() {
        use Encoding::{Bool, Date, Int4, Interval, Json, Numeric, Text, Time, TimeTz, Uuid};
        for (encoding, value) in [
            (Bool, &b""[..]),
            (Bool, b"\x02"),
            (Int4, b"\0\0\0"),
            (Uuid, b""),
            (Text, b"\xff"),
            (Json, b"\xff"),
            (Date, b"\0\0\0\0\0"),
            (Interval, b"\0"),
            (Time, b"\xff\xff\xff\xff\xff\xff\xff\xff"),
            (TimeTz, b"\0\0\0\0\0\0\0\0\x7f\xff\xff\xff"),
            (Numeric, b"\0\x01\0\0\0\0\0"),
            (Numeric, b"\0\x01\0\0\0\0\0\0"),
            (Numeric, b"\0\x01\0\0\0\0\0\0\x27\x10"),
            (Numeric, b"\0\0\0\0\0\x01\0\0"),
            (Numeric, b"\0\0\0\0\0\0\0\0\0"),
            (Numeric, b"\0\0\0\0\0\0\xff\xff"),
        ] {
            assert_eq!(json(&encoding, value), None, "{encoding:?} {value:?}");
        }
    }

    #[test]
    fn no_bytes_make_it_panic_and_what_it_writes_is_json() {
        use Encoding::{Bool, Bytea, Date, Float4, Float8, Int2, Int4, Int8, Interval, Numeric, Oid, Quoted};
        use Encoding::{Text, Time, TimeTz, Timestamp, TimestampTz, Uuid};
        let all = [
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
            Quoted,
        ];
        let value = (0..24usize).prop_flat_map(|len| {
            // Bytes that are all ones or zeros are the ends of every range.
            proptest::collection::vec(
                prop_oneof![Just(0u8), Just(0xff), Just(0x7f), Just(0x80), any::<u8>()],
                len,
            )
        });
        proptest!(ProptestConfig::with_cases(4_000), |(value in value)| {
            for encoding in &all {
                if let Some(text) = json(encoding, &value) {
                    let read: Result<serde_json::Value, _> = serde_json::from_str(&text);
                    prop_assert!(read.is_ok(), "{encoding:?} {value:?} {text}");
                }
            }
        });
    }
}
