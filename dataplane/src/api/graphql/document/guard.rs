//! What is looked at before the parser runs: it recurses, so that brackets are counted first, and it keeps numbers as floating
//! point, so that one with more digits than that has is refused.

use rowgate_core::problem::Code;

use crate::api::graphql::error::GraphQlError;

/// Bytes of a document.
const MAX_BYTES: usize = 64 << 10;
/// Brackets within each other.
const MAX_BRACKETS: usize = 64;
/// Decimal digits that 64 bits of floating point keep.
const MAX_DIGITS: usize = 15;

/// Whether the parser may be given the text.
pub(super) fn check(text: &str) -> Result<(), GraphQlError> {
    if MAX_BYTES < text.len() {
        let what = format!("the document has {} bytes, and {MAX_BYTES} is the most", text.len());
        return Err(GraphQlError::new(Code::TooLarge, what));
    }
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'#' => at += bytes[at..].iter().take_while(|byte| !matches!(byte, b'\n' | b'\r')).count(),
            b'"' => at = string(bytes, at),
            b'{' | b'[' | b'(' => {
                depth += 1;
                if MAX_BRACKETS < depth {
                    let what =
                        format!("the document nests more than {MAX_BRACKETS} brackets within each other");
                    return Err(GraphQlError::new(Code::BadRequest, what));
                }
                at += 1;
            }
            b'}' | b']' | b')' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                at += bytes[at..]
                    .iter()
                    .take_while(|byte| **byte == b'_' || byte.is_ascii_alphanumeric())
                    .count();
            }
            b'-' | b'0'..=b'9' => {
                let is_number = |byte: &&u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let len = bytes[at..].iter().take_while(is_number).count().max(1);
                number(&text[at..at + len])?;
                at += len;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// Where the string that begins at `at` ends. One without an end ends with the text.
fn string(bytes: &[u8], at: usize) -> usize {
    let is_block = bytes[at..].starts_with(b"\"\"\"");
    let mut at = at + if is_block { 3 } else { 1 };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if is_block && bytes[at..].starts_with(b"\\\"\"\"") => at += 4,
            b'\\' if !is_block => at += 2,
            b'"' if is_block && bytes[at..].starts_with(b"\"\"\"") => return at + 3,
            b'"' if !is_block => return at + 1,
            b'\n' | b'\r' if !is_block => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn number(text: &str) -> Result<(), GraphQlError> {
    if text.parse::<i64>().is_ok() {
        return Ok(());
    }
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count();
    match digits <= MAX_DIGITS {
        true => Ok(()),
        false => Err(GraphQlError::new(
            Code::InvalidValue,
            "a number of the document has more digits than a document keeps; send it in variables",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_where_they_are_brackets() {
        let nested = |n: usize| format!("{}{}", "{a".repeat(n), "}".repeat(n));
        assert!(check(&nested(MAX_BRACKETS)).is_ok());
        assert!(check(&nested(MAX_BRACKETS + 1)).is_err());
        let many = "{".repeat(MAX_BRACKETS + 1);
        for text in [
            format!("# {many}\n{{a}}"),
            format!("{{a(b: \"{many}\")}}"),
            format!("{{a(b: \"\\\"{many}\")}}"),
            format!("{{a(b: \"\"\"{many} \\\"\"\" \" \"\"\")}}"),
        ] {
            assert!(check(&text).is_ok(), "{text}");
        }
        // what stands behind them counts again
        for before in ["# a\n", "{a(b: \"\\\\\") ", "\"\"\" \\\"\"\" \"\"\" ", "\"open\n"] {
            assert!(check(&format!("{before}{many}")).is_err(), "{before}");
        }
    }

    #[test]
    fn numbers_keep_their_digits_or_are_refused() {
        for good in
            ["1", "-9223372036854775808", "0.1", "1e300", "123456789012.345", "0.000000123456789012345"]
        {
            assert!(check(&format!("{{a(b: {good})}}")).is_ok(), "{good}");
        }
        for wrong in ["9223372036854775808", "0.1234567890123456", "1234567890123456.5e3"] {
            assert!(check(&format!("{{a(b: {wrong})}}")).is_err(), "{wrong}");
        }
        assert!(check("{a12345678901234567890}").is_ok());
    }
}
