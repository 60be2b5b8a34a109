//! `numeric` as a JSON number with every digit that PostgreSQL shows.

use crate::wire::connection::frames::Fields;
use crate::wire::failure::Malformed;

const NEGATIVE: u16 = 0x4000;
/// The most digits that `numeric` keeps after its point.
const MAX_SCALE: u16 = 0x3fff;

/// Header of four 16-bit numbers (how many digits, weight of the first, sign, digits shown after the point), then the
/// digits in base 10,000.
pub(super) fn write(value: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut fields = Fields::new(value);
    let n_digits = usize::from(u16::from_be_bytes(fields.bytes()?));
    let weight = i32::from(i16::from_be_bytes(fields.bytes()?));
    let sign = u16::from_be_bytes(fields.bytes()?);
    let scale = u16::from_be_bytes(fields.bytes()?);
    let (digits, odd) = fields.rest().as_chunks::<2>();
    let is_digit = |pair: &[u8; 2]| u16::from_be_bytes(*pair) < 10_000;
    if digits.len() != n_digits || !odd.is_empty() || MAX_SCALE < scale || !digits.iter().all(is_digit) {
        return Err(Malformed("a numeric in an invalid format"));
    }
    match sign {
        0 => {}
        NEGATIVE => out.push(b'-'),
        0xc000 => return special(b"\"NaN\"", out),
        0xd000 => return special(b"\"Infinity\"", out),
        0xf000 => return special(b"\"-Infinity\"", out),
        _ => return Err(Malformed("a numeric with an unknown sign")),
    }
    let digit = |i: i32| {
        usize::try_from(i).ok().and_then(|i| digits.get(i)).map_or(0, |pair| u16::from_be_bytes(*pair))
    };
    // PostgreSQL keeps no leading zeros, and JSON allows none
    if 0 < weight && digit(0) == 0 {
        return Err(Malformed("a numeric that begins with zeros"));
    }
    match weight {
        ..0 => out.push(b'0'),
        0.. => {
            super::integer(digit(0), out);
            (1..=weight).for_each(|i| out.extend_from_slice(&four(digit(i))));
        }
    }
    if 0 < scale {
        out.push(b'.');
        let mut left = usize::from(scale);
        let mut i = weight + 1;
        while 0 < left {
            let shown = left.min(4);
            out.extend_from_slice(&four(digit(i))[..shown]);
            left -= shown;
            i += 1;
        }
    }
    Ok(())
}

fn special(text: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    out.extend_from_slice(text);
    Ok(())
}

fn four(digit: u16) -> [u8; 4] {
    [digit / 1000, digit / 100 % 10, digit / 10 % 10, digit % 10].map(|d| b'0' + d as u8)
}
