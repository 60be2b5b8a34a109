//! Why the text of an API caller is not run, and where in it the reason stands.

use std::fmt;

use sqlparser::tokenizer::{Location, Span};

/// The rule that a text breaks. The message is made of our own words and of names that the caller wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A stable word for the rule, such as `function` or `locking`.
    pub rule: &'static str,
    /// What is refused and what to write instead, without a full stop.
    pub message: String,
    /// From 1; 0 where no place in the text is to blame.
    pub line: u64,
    /// From 1, in characters; 0 where no place in the text is to blame.
    pub column: u64,
}

pub(crate) type Checked<T = ()> = Result<T, Refusal>;

/// A span, or a place in the text that something without a span of its own stands near.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TextPosition {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl TextPosition {
    /// This place, or another where a part of the tree has none.
    pub(crate) fn or(self, other: TextPosition) -> TextPosition {
        if self.line == 0 { other } else { self }
    }
}

impl From<Span> for TextPosition {
    fn from(span: Span) -> TextPosition {
        span.start.into()
    }
}

impl From<Location> for TextPosition {
    fn from(Location { line, column }: Location) -> TextPosition {
        TextPosition { line, column }
    }
}

impl Refusal {
    pub(crate) fn new(
        rule: &'static str,
        at: impl Into<TextPosition>,
        message: impl Into<String>,
    ) -> Refusal {
        let TextPosition { line, column } = at.into();
        Refusal { rule, message: message.into(), line, column }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.message),
            line => write!(f, "line {line}, column {}: {}", self.column, self.message),
        }
    }
}

impl std::error::Error for Refusal {}
