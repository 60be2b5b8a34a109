//! Percent-encoding of URLs (RFC 3986): the one set of characters to escape, and the one decoder.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_decode_str, utf8_percent_encode};

/// What is escaped in a part of a URL: everything but the unreserved characters of RFC 3986, 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Why a text cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadEncoding {
    #[error("a percent sign is not followed by two hexadecimal digits")]
    Escape,
    #[error("the decoded bytes are not UTF-8")]
    NotUtf8,
}

/// The text with every reserved character escaped.
#[must_use]
pub fn encode(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

/// Decodes once and strictly: a broken escape is an error. A plus sign stays one.
pub fn decode(text: &str) -> Result<Cow<'_, str>, BadEncoding> {
    let bytes = text.as_bytes();
    let is_escape =
        |i: usize| bytes.get(i + 1..i + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    if bytes.iter().enumerate().any(|(i, byte)| *byte == b'%' && !is_escape(i)) {
        return Err(BadEncoding::Escape);
    }
    percent_decode_str(text).decode_utf8().map_err(|_| BadEncoding::NotUtf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_decoded_once() {
        for (text, decoded) in
            [("a%2Fb", "a/b"), ("100%2525", "100%25"), ("a+b%20c", "a+b c"), ("%C3%A4", "ä")]
        {
            assert_eq!(decode(text).as_deref(), Ok(decoded));
        }
        for wrong in ["%", "%2", "%zz", "a%", "%%20", "%+1"] {
            assert_eq!(decode(wrong), Err(BadEncoding::Escape), "{wrong}");
        }
        for wrong in ["%ff", "%C3"] {
            assert_eq!(decode(wrong), Err(BadEncoding::NotUtf8), "{wrong}");
        }
    }

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        for text in ["/run/pg", "a b+c%", "ä~-_.", ""] {
            assert_eq!(decode(&encode(text).to_string()).as_deref(), Ok(text));
        }
    }
}
