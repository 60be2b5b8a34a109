//! Dates, times and intervals as PostgreSQL's `to_json` prints them.

use super::{integer, two_digits};
use crate::wire::failure::Malformed;

const DAY: i64 = 86_400_000_000;
/// Days from 0000-03-01 to 2000-01-01, PostgreSQL's first day.
const EPOCH: i64 = 730_425;

/// `value`: days since 2000-01-01.
pub(super) fn date(value: i32, out: &mut Vec<u8>) {
    match value {
        i32::MAX => out.extend_from_slice(b"\"infinity\""),
        i32::MIN => out.extend_from_slice(b"\"-infinity\""),
        _ => {
            out.push(b'"');
            let is_bc = day(i64::from(value), out);
            end(is_bc, out);
        }
    }
}

/// `value`: microseconds since 2000-01-01, in UTC where there is a `zone`.
pub(super) fn timestamp(value: i64, zone: &str, out: &mut Vec<u8>) {
    match value {
        i64::MAX => out.extend_from_slice(b"\"infinity\""),
        i64::MIN => out.extend_from_slice(b"\"-infinity\""),
        _ => {
            out.push(b'"');
            let is_bc = day(value.div_euclid(DAY), out);
            out.push(b'T');
            clock(value.rem_euclid(DAY), out);
            out.extend_from_slice(zone.as_bytes());
            end(is_bc, out);
        }
    }
}

/// `value`: microseconds since midnight; 24:00:00 is one.
pub(super) fn time(value: i64, out: &mut Vec<u8>) -> Result<(), Malformed> {
    out.push(b'"');
    if !(0..=DAY).contains(&value) {
        return Err(Malformed("a time outside its day"));
    }
    clock(value, out);
    out.push(b'"');
    Ok(())
}

/// `value`: a time, then the seconds west of Greenwich.
pub(super) fn time_tz(value: [u8; 12], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let (time_of_day, zone) = value.split_first_chunk::<8>().expect("12 is more than 8");
    time(i64::from_be_bytes(*time_of_day), out)?;
    out.pop();
    let zone = i32::from_be_bytes(zone.try_into().expect("12 less 8"));
    if DAY / 1_000_000 <= i64::from(zone).abs() {
        return Err(Malformed("a time zone beyond a day"));
    }
    out.push(if zone <= 0 { b'+' } else { b'-' });
    let seconds = zone.unsigned_abs();
    two_digits(seconds / 3600, out);
    for part in [seconds / 60 % 60, seconds % 60].iter().take(match seconds {
        _ if seconds % 60 != 0 => 2,
        _ if seconds % 3600 != 0 => 1,
        _ => 0,
    }) {
        out.push(b':');
        two_digits(*part, out);
    }
    out.push(b'"');
    Ok(())
}

/// `value`: microseconds, days, months. Each part has its own sign.
pub(super) fn interval(value: [u8; 16], out: &mut Vec<u8>) {
    let [micros, small] = [&value[..8], &value[8..]].map(|half| half.try_into().expect("half of 16"));
    let micros = i64::from_be_bytes(micros);
    let small = i64::from_be_bytes(small);
    let (days, months) = ((small >> 32) as i32, small as i32);
    match (micros, days, months) {
        (i64::MAX, i32::MAX, i32::MAX) => return out.extend_from_slice(b"\"infinity\""),
        (i64::MIN, i32::MIN, i32::MIN) => return out.extend_from_slice(b"\"-infinity\""),
        (0, 0, 0) => return out.extend_from_slice(b"\"PT0S\""),
        _ => {}
    }
    out.extend_from_slice(b"\"P");
    let part = |number: i64, unit: u8, out: &mut Vec<u8>| {
        if number != 0 {
            integer(number, out);
            out.push(unit);
        }
    };
    part(i64::from(months / 12), b'Y', out);
    part(i64::from(months % 12), b'M', out);
    part(i64::from(days), b'D', out);
    if micros != 0 {
        out.push(b'T');
        part(micros / 3_600_000_000, b'H', out);
        part(micros / 60_000_000 % 60, b'M', out);
        let seconds = micros % 60_000_000;
        if seconds != 0 {
            if seconds < 0 {
                out.push(b'-');
            }
            integer(seconds.unsigned_abs() / 1_000_000, out);
            fraction((seconds.unsigned_abs() % 1_000_000) as u32, out);
            out.push(b'S');
        }
    }
    out.push(b'"');
}

/// `days` since 2000-01-01 in the proleptic Gregorian calendar, counted in years that begin in March. True: BC.
fn day(days: i64, out: &mut Vec<u8>) -> bool {
    let days = days + EPOCH;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year_of_era + 400 * era + next;
    // There is no year 0: before 1 comes 1 BC.
    let shown = if year <= 0 { 1 - year } else { year };
    for bound in [1000, 100, 10] {
        if shown < bound {
            out.push(b'0');
        }
    }
    integer(shown, out);
    for part in [month, day] {
        out.push(b'-');
        two_digits(part as u32, out);
    }
    year <= 0
}

/// Microseconds as `10:00:00.5`.
fn clock(micros: i64, out: &mut Vec<u8>) {
    let seconds = (micros / 1_000_000) as u32;
    two_digits(seconds / 3600, out);
    for part in [seconds / 60 % 60, seconds % 60] {
        out.push(b':');
        two_digits(part, out);
    }
    fraction((micros % 1_000_000) as u32, out);
}

/// A fraction of a second without its last zeros.
fn fraction(micros: u32, out: &mut Vec<u8>) {
    if micros == 0 {
        return;
    }
    out.push(b'.');
    let mut unit = 100_000;
    let mut left = micros;
    while 0 < left {
        out.push(b'0' + (left / unit) as u8);
        left %= unit;
        unit /= 10;
    }
}

fn end(is_bc: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if is_bc { b" BC\"" } else { b"\"" });
}
