//! Spans of time as manifests write them: `500ms`, `30s`, `2m`, `24h`, `30d`.

use std::str::FromStr;
use std::time::Duration;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A span of time with a unit, parsed. Written back in the largest unit that is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(Duration);

/// Why a text is no span.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration: write a whole number with ms, s, m, h or d, such as 30s")]
pub struct SpanError(String);

const UNITS: [(&str, u64); 5] = [("ms", 1), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];

impl Span {
    #[must_use]
    pub fn duration(self) -> Duration {
        self.0
    }

    /// Milliseconds; `u32::MAX` when it does not fit.
    #[must_use]
    pub fn millis(self) -> u32 {
        u32::try_from(self.0.as_millis()).unwrap_or(u32::MAX)
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Span, SpanError> {
        let error = || SpanError(text.to_owned());
        let (number, factor) = UNITS
            .iter()
            .find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number, *factor)))
            .ok_or_else(error)?;
        if number.is_empty() || 9 < number.len() || !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(error());
        }
        let number: u64 = number.parse().map_err(|_| error())?;
        Ok(Span(Duration::from_millis(number * factor)))
    }
}

impl TryFrom<String> for Span {
    type Error = SpanError;

    fn try_from(text: String) -> Result<Span, SpanError> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> String {
        let millis = u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX);
        let (unit, factor) = UNITS
            .into_iter()
            .filter(|(_, factor)| millis.is_multiple_of(*factor))
            .max_by_key(|(_, factor)| *factor)
            .expect("every number is a multiple of one millisecond");
        format!("{}{unit}", millis / factor)
    }
}

/// At most 99 minutes, so that PostgreSQL's setting holds it.
pub(crate) fn statement_timeout_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 8,
        "pattern": "^([1-9][0-9]{0,5}ms|[1-9][0-9]{0,3}s|[1-9][0-9]?m)$",
    })
}

pub(crate) fn period_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": 8, "pattern": "^[1-9][0-9]{0,6}[smhd]$" })
}

/// Up to 24 hours, or their like in smaller units.
pub(crate) fn delay_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 6,
        "pattern": "^([1-9][0-9]{0,4}s|[1-9][0-9]{0,2}m|([1-9]|1[0-9]|2[0-4])h)$",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_written() {
        for (text, millis) in [("500ms", 500), ("30s", 30_000), ("2m", 120_000), ("24h", 86_400_000)] {
            assert_eq!(text.parse::<Span>().map(Span::millis), Ok(millis), "{text}");
        }
        for (text, written) in [("500ms", "500ms"), ("120s", "2m"), ("24h", "1d"), ("90s", "90s")] {
            assert_eq!(text.parse::<Span>().map(String::from), Ok(written.to_owned()), "{text}");
        }
        for bad in ["", "30", "s", "-1s", "1.5s", "1w", "9999999999s", " 1s"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }
}
