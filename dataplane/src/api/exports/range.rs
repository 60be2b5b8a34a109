//! Which bytes of a file are asked for: `Range` and `If-Range`, as RFC 9110 has them.

use axum::http::HeaderMap;
use axum::http::header::{IF_RANGE, RANGE};

/// What to send of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// So many bytes, from the one at `start`; at least one.
    Range {
        start: u64,
        len: u64,
    },
    /// The file has none of those that are asked for.
    Beyond,
}

impl Part {
    /// Of a file of this length and tag. What is no range of bytes is not asked for at all, and neither are several.
    pub(super) fn of(headers: &HeaderMap, len: u64, etag: &str) -> Part {
        let mut ranges = headers.get_all(RANGE).iter();
        let (Some(range), None) = (ranges.next(), ranges.next()) else { return Part::Whole };
        let is_same = headers.get(IF_RANGE).is_none_or(|tag| tag.as_bytes() == etag.as_bytes());
        match range.to_str().ok().filter(|_| is_same).and_then(parse) {
            None => Part::Whole,
            Some((Some(start), end)) if start < len => {
                let end = end.map_or(len, |end| end.saturating_add(1).min(len));
                Part::Range { start, len: end - start }
            }
            Some((None, Some(last))) if 0 < last && 0 < len => {
                let start = len.saturating_sub(last);
                Part::Range { start, len: len - start }
            }
            Some(_) => Part::Beyond,
        }
    }
}

/// `bytes=2-5`, `bytes=2-` and `bytes=-5`: the first byte and the last, or how many at the end.
fn parse(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (unit, range) = text.split_once('=')?;
    let (start, end) = range.trim().split_once('-').filter(|_| unit.trim().eq_ignore_ascii_case("bytes"))?;
    let number = |text: &str| match text {
        "" => Some(None),
        digits if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            // a number beyond all files is none of this one
            Some(Some(digits.parse().unwrap_or(u64::MAX)))
        }
        _ => None,
    };
    match (number(start.trim())?, number(end.trim())?) {
        (None, None) => None,
        (Some(start), Some(end)) if end < start => None,
        range => Some(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "\"a.1\"";

    fn part(range: &'static str, if_range: Option<&'static str>, len: u64) -> Part {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, range.parse().expect("a header"));
        if let Some(tag) = if_range {
            headers.insert(IF_RANGE, tag.parse().expect("a header"));
        }
        Part::of(&headers, len, TAG)
    }

    #[test]
    fn a_range_is_as_much_of_the_file_as_there_is() {
        for (text, expected) in [
            ("bytes=0-", Part::Range { start: 0, len: 10 }),
            ("bytes=2-5", Part::Range { start: 2, len: 4 }),
            ("bytes=9-9", Part::Range { start: 9, len: 1 }),
            ("bytes=2-99", Part::Range { start: 2, len: 8 }),
            ("bytes=-3", Part::Range { start: 7, len: 3 }),
            ("bytes=-99", Part::Range { start: 0, len: 10 }),
            ("Bytes = 2-5 ", Part::Range { start: 2, len: 4 }),
            ("bytes=2-99999999999999999999999", Part::Range { start: 2, len: 8 }),
            ("bytes=10-", Part::Beyond),
            ("bytes=99999999999999999999999-", Part::Beyond),
            ("bytes=-0", Part::Beyond),
            ("bytes=5-2", Part::Whole),
            ("bytes=0-1,4-5", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=a-b", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("rows=1-2", Part::Whole),
            ("bytes", Part::Whole),
        ] {
            assert_eq!(part(text, None, 10), expected, "{text}");
        }
        assert_eq!(part("bytes=0-", None, 0), Part::Beyond);
        assert_eq!(part("bytes=-5", None, 0), Part::Beyond);
        assert_eq!(Part::of(&HeaderMap::new(), 10, TAG), Part::Whole);
    }

    #[test]
    fn another_file_is_sent_whole() {
        assert_eq!(part("bytes=2-5", Some(TAG), 10), Part::Range { start: 2, len: 4 });
        for other in ["\"a.2\"", "W/\"a.1\"", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(part("bytes=2-5", Some(other), 10), Part::Whole, "{other}");
        }
    }
}
