//! How the columns of a result become a JSON object: what `compile` promises and the wire client writes.

use crate::text::Format;

/// The columns of one statement's result, and which of them say where a page ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// In the order of the select list.
    pub columns: Vec<Column>,
    /// Positions in `columns` of the order terms, in order; empty where no page can follow.
    pub position: Vec<usize>,
    /// Position in `columns` of the number of rows in all, the same in every row.
    pub count: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// `"name":` with the name escaped for JSON; `None`: the column is there for `position` or `count` only.
    pub label: Option<Box<str>>,
    pub encoding: Encoding,
}

/// How one value gets from PostgreSQL's wire format to JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    /// Written as PostgreSQL prints it; NaN and infinities as strings.
    Float4,
    Float8,
    Numeric,
    /// text, varchar, bpchar, name, enums: the wire bytes are the text in both formats.
    Text,
    Uuid,
    /// Base 64.
    Bytea,
    Date,
    Time,
    TimeTz,
    Timestamp,
    /// In UTC, with `Z`.
    TimestampTz,
    /// ISO 8601, such as `P1DT2H`.
    Interval,
    /// Read as text, which is JSON already (json, jsonb, and whatever `to_json` made).
    Json,
    /// Any other type: read as text, written as a JSON string.
    Quoted,
}

impl Encoding {
    /// In which format the column is asked for.
    #[must_use]
    pub fn format(self) -> Format {
        match self {
            Encoding::Json | Encoding::Quoted => Format::Text,
            _ => Format::Binary,
        }
    }
}
