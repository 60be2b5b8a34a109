//! Text, UUIDs and bytes as JSON strings.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::MAX_LEN;
use crate::wire::failure::{Malformed, Unwritten};

/// The same bytes. A database in SQL_ASCII may hold text that is not UTF-8, which no JSON can say.
pub(super) fn utf8(value: &[u8]) -> Result<&[u8], Malformed> {
    match str::from_utf8(value) {
        Ok(_) => Ok(value),
        Err(_) => Err(Malformed("text that is not UTF-8")),
    }
}

/// A JSON string, escaped as `to_json` does.
pub(super) fn quoted(value: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritten> {
    let value = utf8(value)?;
    // each byte becomes six at most
    if MAX_LEN / 8 < value.len() && MAX_LEN < out.len() + escaped_len(value) {
        return Err(Unwritten::TooLong);
    }
    out.push(b'"');
    let mut start = 0;
    for (i, &byte) in value.iter().enumerate() {
        if b' ' <= byte && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&value[start..i]);
        start = i + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => {
                out.extend_from_slice(b"\\u00");
                hex(byte, out);
            }
        }
    }
    out.extend_from_slice(&value[start..]);
    out.push(b'"');
    Ok(())
}

fn escaped_len(value: &[u8]) -> usize {
    let len = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0x20.. => 1,
        _ => 6,
    };
    value.iter().map(len).sum()
}

pub(super) fn uuid(value: [u8; 16], out: &mut Vec<u8>) {
    out.push(b'"');
    for (i, byte) in value.into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        hex(byte, out);
    }
    out.push(b'"');
}

pub(super) fn base64(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + value.len().div_ceil(3) * 4, 0);
    STANDARD.encode_slice(value, &mut out[start..]).expect("4 characters stand for each 3 bytes");
    out.push(b'"');
}

fn hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}
