//! What a caller asks for, in the caller's own words: plain strings live here and nowhere further in.

mod print;

/// The options of a `GET`, understood but not yet looked up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadRequest {
    /// Field names in the order given; `*` stands for all. `None`: all.
    pub select: Option<Vec<String>>,
    pub filter: Option<Expr>,
    /// Empty: by the key alone.
    pub orderby: Vec<OrderBy>,
    /// Not yet held against the tenant's limits.
    pub first: Option<i64>,
    /// The cursor, not yet opened.
    pub after: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderBy {
    pub name: String,
    pub descending: bool,
}

/// A filter. `All` and `Any` are flat, so that a chain of any length is one level deep; `Not` and groups nest to
/// [`crate::odata::MAX_DEPTH`]. `Display` writes it in one canonical form, which parses to the same value.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Not(Box<Expr>),
    Compare { left: Operand, op: Comparison, right: Operand },
    In { left: Operand, list: Vec<Literal> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    Name(String),
    Literal(Literal),
}

/// A value as it was written. What it means is decided by the column beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    Null,
    Bool(bool),
    /// Digits with sign, fraction and exponent, as written.
    Number(String),
    Infinity {
        negative: bool,
    },
    NaN,
    Date(String),
    Timestamp(String),
    Time(String),
    Guid(String),
    /// In quotes, with `''` already one quote.
    Text(String),
}

impl Comparison {
    /// The operator after the operands changed places.
    #[must_use]
    pub fn mirrored(self) -> Comparison {
        match self {
            Comparison::Eq => Comparison::Eq,
            Comparison::Ne => Comparison::Ne,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
        }
    }

    /// As a filter spells it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Comparison::Eq => "eq",
            Comparison::Ne => "ne",
            Comparison::Gt => "gt",
            Comparison::Ge => "ge",
            Comparison::Lt => "lt",
            Comparison::Le => "le",
        }
    }
}
