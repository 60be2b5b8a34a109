//! How the columns of a result become a JSON object: what `compile` promises and the wire client writes.

use std::sync::Arc;

use crate::catalog::TypeKind;
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// json: read as text, which is JSON already.
    Json,
    Jsonb,
    /// Any other type: read as text, written as a JSON string.
    Quoted,
    /// Arrays and composites.
    Nested(Arc<Nested>),
}

/// A type that is made of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nested {
    /// Of the type itself, below domains.
    pub oid: u32,
    /// Binary, unless a part of it is [`Encoding::Quoted`], which is only to be had as text.
    pub format: Format,
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// JSON arrays, one within the other for several dimensions; lower bounds are not shown.
    Array {
        element: Part,
        /// What stands between elements in the text form.
        delimiter: u8,
    },
    /// A JSON object, of the attributes in their order.
    Composite(Vec<Attribute>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// `"name":` with the name escaped for JSON.
    pub label: Box<str>,
    pub part: Part,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// As declared, which may be a domain: what the binary form says of it.
    pub oid: u32,
    pub encoding: Encoding,
}

/// `"name":` with the name escaped for JSON.
#[must_use]
pub fn label(name: &str) -> Box<str> {
    let name = serde_json::to_string(name).expect("a string is always JSON");
    format!("{name}:").into_boxed_str()
}

impl Encoding {
    /// Of a type that is `kind` and, below domains, `oid`; not that of its parts.
    #[must_use]
    pub fn scalar(kind: TypeKind, oid: u32) -> Encoding {
        match kind {
            TypeKind::Enum => return Encoding::Text,
            TypeKind::Array | TypeKind::Composite | TypeKind::Range | TypeKind::Other => {
                return Encoding::Quoted;
            }
            TypeKind::Base => {}
        }
        match oid {
            16 => Encoding::Bool,
            17 => Encoding::Bytea,
            // name, text, bpchar, varchar; the one byte of "char" is UTF-8 in its text form only
            19 | 25 | 1042 | 1043 => Encoding::Text,
            20 => Encoding::Int8,
            21 => Encoding::Int2,
            23 => Encoding::Int4,
            26 => Encoding::Oid,
            114 => Encoding::Json,
            700 => Encoding::Float4,
            701 => Encoding::Float8,
            1082 => Encoding::Date,
            1083 => Encoding::Time,
            1114 => Encoding::Timestamp,
            1184 => Encoding::TimestampTz,
            1186 => Encoding::Interval,
            1266 => Encoding::TimeTz,
            1700 => Encoding::Numeric,
            2950 => Encoding::Uuid,
            3802 => Encoding::Jsonb,
            _ => Encoding::Quoted,
        }
    }

    /// In which format the column is asked for.
    #[must_use]
    pub fn format(&self) -> Format {
        match self {
            Encoding::Json | Encoding::Quoted => Format::Text,
            Encoding::Nested(nested) => nested.format,
            _ => Format::Binary,
        }
    }
}
