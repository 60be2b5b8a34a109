//! Dates and times as ISO 8601 writes them: everything that PostgreSQL's own reader would take for something else
//! (month names, "today", day before month) is kept from it.

use crate::request::like;

pub(crate) fn is_infinite(text: &str) -> bool {
    matches!(text, "infinity" | "-infinity")
}

/// `2024-02-29`, with years of 7 digits, which PostgreSQL's dates have, and ` BC` after it as PostgreSQL prints it.
pub(crate) fn is_date(text: &str) -> bool {
    let (text, is_bc) = era(text);
    is_day(text, is_bc)
}

fn is_day(text: &str, is_bc: bool) -> bool {
    let Some((year, rest)) = text.split_once('-') else { return false };
    if !(4..=7).contains(&year.len()) || !digits(year) || number(year) == 0 || !like(rest, "dd-dd") {
        return false;
    }
    // 1 BC is year 0 of those that leap years are counted in
    let year = if is_bc { number(year) - 1 } else { number(year) };
    let (month, day) = (number(&rest[..2]), number(&rest[3..]));
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    1 <= day && day <= days
}

/// Whether the moment lies before the year 1, and the text without its word for that.
fn era(text: &str) -> (&str, bool) {
    text.strip_suffix(" BC").map_or((text, false), |text| (text, true))
}

/// `10:00`, `10:00:59.999999`; with an offset where `offset`.
pub(crate) fn is_time(text: &str, offset: bool) -> bool {
    let clock = match text.find(['Z', '+', '-']) {
        Some(at) if offset && is_offset(&text[at..]) => &text[..at],
        Some(_) => return false,
        None => text,
    };
    is_clock(clock)
}

/// A date, or a date and a time with `T` or a space between. Without `offset` the only one allowed is `Z`, which says
/// nothing that the column does not say.
pub(crate) fn is_timestamp(text: &str, offset: bool) -> bool {
    let (text, is_bc) = era(text);
    let Some((date, time)) = text.split_once(['T', ' ']) else { return is_day(text, is_bc) };
    is_day(date, is_bc)
        && match offset {
            true => is_time(time, true),
            false => is_clock(time.strip_suffix('Z').unwrap_or(time)),
        }
}

/// The text with the `+` that was read as the blank before its offset; `None` where there is no such blank.
pub(crate) fn with_plus(text: &str) -> Option<String> {
    let (moment, offset) = text.rsplit_once(' ')?;
    let with_plus = format!("{moment}+{offset}");
    (is_timestamp(&with_plus, true) || is_time(&with_plus, true))
        .then_some(with_plus)
        .filter(|_| !is_timestamp(text, true))
}

/// A duration of OData, whose one sign stands before all of it, as PostgreSQL reads it: each part has its own.
pub(crate) fn interval(duration: &str) -> String {
    let Some(parts) = duration.strip_prefix('-') else { return duration.to_owned() };
    let mut text = String::new();
    let mut is_within = false;
    for c in parts.chars() {
        if c.is_ascii_digit() && !is_within {
            text.push('-');
        }
        is_within = c.is_ascii_digit() || c == '.';
        text.push(c);
    }
    text
}

/// Microseconds from 2000-01-01 UTC to the moment that `text`, a [`is_timestamp`] with an offset or none, names.
/// The infinities are the ends of the numbers. `None`: it lies beyond what can be counted.
pub(crate) fn micros(text: &str) -> Option<i64> {
    match text {
        "infinity" => return Some(i64::MAX),
        "-infinity" => return Some(i64::MIN),
        _ => {}
    }
    let (text, is_bc) = era(text);
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let (year, month_day) = date.split_once('-')?;
    let year: i64 = year.parse().ok()?;
    let year = if is_bc { 1 - year } else { year };
    let (month, day) = (number(month_day.get(..2)?), number(month_day.get(3..)?));
    let (clock, offset) = time.split_at(time.find(['Z', '+', '-']).unwrap_or(time.len()));
    let ahead = match offset.strip_prefix(['+', '-']) {
        None => 0,
        Some(ahead) => {
            let digits: String = ahead.chars().filter(char::is_ascii_digit).collect();
            let part = |at: usize| digits.get(at..at + 2).map_or(0, number);
            let ahead = i64::from(3600 * part(0) + 60 * part(2) + part(4));
            if offset.starts_with('-') { -ahead } else { ahead }
        }
    };
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let part = |at: usize| whole.get(at..at + 2).map_or(0, number);
    let seconds = i64::from(3600 * part(0) + 60 * part(3) + part(6)) - ahead;
    // Nine digits at most, rounded as PostgreSQL rounds them.
    let nanos: i64 = format!("{fraction:0<9}").parse().ok()?;
    let micros = seconds * 1_000_000 + (nanos + 500) / 1_000;
    days(year, month, day).checked_mul(86_400_000_000)?.checked_add(micros)
}

/// Days from 2000-01-01, in a calendar whose years begin in March.
fn days(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = i64::from(if month <= 2 { month + 9 } else { month - 3 });
    let day_of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 730_425
}

fn is_clock(text: &str) -> bool {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let seconds = match whole.len() {
        5 if fraction.is_none() && like(whole, "dd:dd") => 0,
        8 if like(whole, "dd:dd:dd") => number(&whole[6..]),
        _ => return false,
    };
    let (hours, minutes) = (number(&whole[..2]), number(&whole[3..5]));
    let fraction_fits = fraction.is_none_or(|f| digits(f) && f.len() <= 9);
    fraction_fits && minutes < 60 && seconds < 60 && (hours < 24 || (hours == 24 && minutes + seconds == 0))
}

fn is_offset(text: &str) -> bool {
    text == "Z"
        || text.strip_prefix(['+', '-']).is_some_and(|offset| {
            let shape = ["dd", "dddd", "dd:dd", "dd:dd:dd"].iter().any(|shape| like(offset, shape));
            let (hours, rest) = offset.split_at_checked(2).unwrap_or_default();
            shape && number(hours) < 16 && rest.split(':').all(|part| number(part) < 60)
        })
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// At most seven digits, checked by the caller.
fn number(text: &str) -> u32 {
    text.bytes().fold(0, |n, digit| n * 10 + u32::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_iso_8601_is_a_moment() {
        for (text, date) in [
            ("2024-02-29", true),
            ("2023-02-29", false),
            ("1900-02-29", false),
            ("12024-12-31", true),
            ("0044-03-15 BC", true),
            ("5874897-12-31", true),
            ("12345678-01-01", false),
            ("0001-02-29 BC", true),
            ("0005-02-29 BC", true),
            ("0004-02-29 BC", false),
            ("0101-02-29 BC", false),
            ("0401-02-29 BC", true),
            ("0000-01-01 BC", false),
            ("0000-01-01", false),
            ("2024-13-01", false),
            ("2024-04-31", false),
            ("31-01-2024", false),
            ("2024-1-1", false),
            ("today", false),
            ("", false),
        ] {
            assert_eq!(is_date(text), date, "{text}");
        }
        for (text, without, with) in [
            ("2024-01-31", true, true),
            ("2024-01-31T10:00", true, true),
            ("2024-01-31 10:00:00.123456", true, true),
            ("2024-01-31T10:00:00Z", true, true),
            ("0044-03-15 10:00:00Z BC", true, true),
            ("2024-01-31T10:00:00+02:00", false, true),
            ("2024-01-31T10:00:00-0930", false, true),
            ("0001-02-29T10:00:00Z BC", true, true),
            ("0004-02-29T10:00:00Z BC", false, false),
            ("2024-01-31T10:00:00+02:00:59", false, true),
            ("2024-01-31T10:00:00+02:00:60", false, false),
            ("2024-01-31T10:00:00+02:60", false, false),
            ("2024-01-31T10:00:00-0960", false, false),
            ("2024-01-31T10:00:00+0é0", false, false),
            ("2024-01-31T10:00:00+99", false, false),
            ("2024-01-31T25:00", false, false),
            ("2024-01-31T24:00:01", false, false),
            ("2024-01-31T10:00.5", false, false),
            ("2024-01-31T", false, false),
            ("2024-01-31TZ", false, false),
            ("2024-01-31T10:00:00 Europe/Rome", false, false),
            ("now", false, false),
            ("2024-01-31Té0:00", false, false),
        ] {
            assert_eq!((is_timestamp(text, false), is_timestamp(text, true)), (without, with), "{text}");
        }
        for (text, expected) in [
            ("2000-01-01T00:00:00Z", Some(0)),
            ("1999-12-31T23:59:59.999999Z", Some(-1)),
            ("2000-01-01 02:00:00+02", Some(0)),
            ("1999-12-31T18:30:00-05:30", Some(0)),
            ("1999-12-31T18:30:00-0530", Some(0)),
            ("2000-01-01T01:02:03+01:02:03", Some(0)),
            ("2000-01-01", Some(0)),
            ("2024-02-29T12:34:56.7Z", Some(762_525_296_700_000)),
            ("2024-02-29T12:34:56.7000004Z", Some(762_525_296_700_000)),
            ("2000-03-01T00:00:00Z", Some(60 * 86_400_000_000)),
            ("infinity", Some(i64::MAX)),
            // 2,000 years, of 146,097 days each 400, before 1957-03-15
            ("0044-03-15 BC", Some(-64_464_508_800_000_000)),
        ] {
            assert_eq!(micros(text), expected, "{text}");
        }
        for (duration, expected) in
            [("PT1H", "PT1H"), ("-P1DT2H3M4.5S", "P-1DT-2H-3M-4.5S"), ("-PT0.05S", "PT-0.05S")]
        {
            assert_eq!(interval(duration), expected);
        }
        for (text, expected) in [
            ("2026-01-01T00:00:00 02:00", Some("2026-01-01T00:00:00+02:00")),
            ("10:00:00 02", Some("10:00:00+02")),
            ("2026-01-01 02:00", None),
            ("2026-01-01 00:00:00 0200", Some("2026-01-01 00:00:00+0200")),
            ("2026-01-01T00:00:00", None),
            ("", None),
        ] {
            assert_eq!(with_plus(text).as_deref(), expected, "{text}");
        }
        assert!(is_time("10:00", false) && is_time("10:00:00.5+02", true) && !is_time("10:00+02", false));
    }
}
