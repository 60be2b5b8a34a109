//! One scalar as PostgreSQL prints it under our settings, to JSON: the same text as from its binary form.

use rowgate_sql::shape::Encoding;

use super::text;
use crate::wire::failure::{Malformed, Unwritten};

/// Appends `value`, which stands within an array or a composite.
pub(super) fn write(encoding: &Encoding, value: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritten> {
    match encoding {
        Encoding::Bool => match value {
            b"t" => out.extend_from_slice(b"true"),
            b"f" => out.extend_from_slice(b"false"),
            _ => return Err(Malformed("a boolean that is neither true nor false").into()),
        },
        Encoding::Int2 | Encoding::Int4 | Encoding::Int8 | Encoding::Oid => number(value, out)?,
        Encoding::Float4 | Encoding::Float8 | Encoding::Numeric => match value {
            b"NaN" | b"Infinity" | b"-Infinity" => text::quoted(value, out)?,
            _ => number(value, out)?,
        },
        Encoding::Bytea => bytea(value, out)?,
        Encoding::Timestamp => moment(value, b"", out)?,
        Encoding::TimestampTz => moment(value, b"+00", out)?,
        Encoding::Json | Encoding::Jsonb => out.extend_from_slice(text::utf8(value)?),
        Encoding::Text
        | Encoding::Quoted
        | Encoding::Uuid
        | Encoding::Date
        | Encoding::Time
        | Encoding::TimeTz
        | Encoding::Interval => text::quoted(value, out)?,
        Encoding::Nested(nested) => super::literal::nested(nested, value, out)?,
    }
    Ok(())
}

/// What PostgreSQL prints is JSON already, if it is a number.
fn number(value: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritten> {
    if !is_number(value) {
        return Err(Malformed("an invalid number").into());
    }
    out.extend_from_slice(value);
    Ok(())
}

fn is_number(value: &[u8]) -> bool {
    let digits = |rest: &mut &[u8]| {
        let n_digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        *rest = &rest[n_digits..];
        n_digits
    };
    let mut rest = value.strip_prefix(b"-").unwrap_or(value);
    let whole = rest;
    let n_whole = digits(&mut rest);
    if n_whole == 0 || (1 < n_whole && whole[0] == b'0') {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        rest = fraction;
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    if let [b'e', exponent @ ..] = rest {
        rest = match exponent {
            [b'+' | b'-', exponent @ ..] => exponent,
            _ => exponent,
        };
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    rest.is_empty()
}

/// `\x` and hexadecimal digits to base 64.
fn bytea(value: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritten> {
    const BROKEN: Malformed = Malformed("bytes that are not hexadecimal");
    let (pairs, odd) = value.strip_prefix(b"\\x").ok_or(BROKEN)?.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    match bytes {
        Some(bytes) if odd.is_empty() => text::base64(&bytes, out),
        _ => return Err(BROKEN.into()),
    }
    Ok(())
}

/// `2024-02-29 10:00:00.5+00 BC`: a `T` for the first blank, and a `Z` for `zone`.
fn moment(value: &[u8], zone: &'static [u8], out: &mut Vec<u8>) -> Result<(), Unwritten> {
    const BROKEN: Malformed = Malformed("an invalid timestamp");
    if matches!(value, b"infinity" | b"-infinity") {
        return text::quoted(value, out);
    }
    let (value, era) = match value.strip_suffix(b" BC") {
        Some(value) => (value, &b" BC"[..]),
        None => (value, &b""[..]),
    };
    let value = value.strip_suffix(zone).ok_or(BROKEN)?;
    let blank = value.iter().position(|&byte| byte == b' ').ok_or(BROKEN)?;
    let is_ours = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'.');
    let (day, clock) = (&value[..blank], &value[blank + 1..]);
    if !day.iter().chain(clock).all(is_ours) {
        return Err(BROKEN.into());
    }
    out.push(b'"');
    out.extend_from_slice(day);
    out.push(b'T');
    out.extend_from_slice(clock);
    if !zone.is_empty() {
        out.push(b'Z');
    }
    out.extend_from_slice(era);
    out.push(b'"');
    Ok(())
}
