//! What a caller asks for, in the caller's own words: plain strings live here and nowhere further in.

mod body;
mod function;
mod group;
mod print;
mod word;

pub(crate) use body::MAX_VALUES;
pub use body::{Body, Input, Row, Unreadable, fields, input, items};
pub use function::Function;
pub use group::{AggregateFunction, Aggregation, GroupRequest};
pub(crate) use print::quoted;
pub(crate) use word::{
    BRACKETS, ENDS_WORD, FOREIGN_QUOTES, digits, is_bare_name, is_guid, is_number, like, literal,
};

/// What a read asks for, understood but not yet looked up.
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
    /// Whether the answer says how many rows there are in all.
    pub count: bool,
    /// What stands within each row besides its fields.
    pub expand: Vec<Expand>,
    /// What was given besides and is no option, by name and value: who knows the fields refuses what may be meant as one.
    pub others: Vec<(String, String)>,
}

/// A relationship to follow, and what is asked of the rows there. It has no `after`.
#[derive(Debug, Clone, PartialEq)]
pub struct Expand {
    pub name: String,
    pub request: ReadRequest,
}

/// How deep a filter may nest.
pub const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderBy {
    pub name: String,
    pub descending: bool,
}

/// A filter. `All` and `Any` are flat, so that a chain of any length is one level deep; what nests (`not`, groups,
/// calls, minus signs) nests to [`MAX_DEPTH`]. `Display` writes it in one canonical form, which parses to
/// the same value.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Not(Box<Expr>),
    Compare {
        left: Term,
        op: Comparison,
        right: Term,
    },
    /// The list is never empty.
    In {
        left: Term,
        list: Vec<Term>,
    },
    /// A term that is a condition by itself: a boolean field, function or constant.
    Is(Term),
    /// `path/any(...)`: there is a row where the relationship leads for which `inner` holds, or any row at all. `is_all`: `inner`
    /// holds for each.
    Related {
        path: String,
        is_all: bool,
        inner: Option<Box<Expr>>,
    },
}

/// What has a value. Chains are flat and are worked off from the left: all of one level, `add sub` or `mul div mod`,
/// and what binds looser stands in `rest` or `first` as a chain of its own.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    Name(String),
    Literal(Literal),
    Call {
        function: Function,
        arguments: Vec<Term>,
    },
    /// `rest` is never empty.
    Chain {
        first: Box<Term>,
        rest: Vec<(Arithmetic, Term)>,
    },
    /// A minus sign, but the one of a number, which belongs to the number.
    Negate(Box<Term>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
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
    /// `duration'P1DT2H'`, as OData writes it.
    Duration(String),
    /// `binary'AQID'`, in base 64 of either alphabet.
    Binary(String),
    /// `Sales.Status'open'`: the name before the quote is any qualified name.
    Enum {
        ty: String,
        label: String,
    },
}

impl Literal {
    /// Whether an offset from UTC may follow it.
    #[must_use]
    pub(crate) fn is_clock(&self) -> bool {
        matches!(self, Literal::Timestamp(_) | Literal::Time(_))
    }
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

impl Arithmetic {
    /// As a filter spells it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Arithmetic::Add => "add",
            Arithmetic::Sub => "sub",
            Arithmetic::Mul => "mul",
            Arithmetic::Div => "div",
            Arithmetic::Mod => "mod",
        }
    }

    /// Whether it is one of `mul div mod`, which bind tighter than `add sub`.
    #[must_use]
    pub fn binds_tighter(self) -> bool {
        !matches!(self, Arithmetic::Add | Arithmetic::Sub)
    }
}

impl Term {
    /// Whether this is a chain, and of which level.
    #[must_use]
    pub(crate) fn chain_of_products(&self) -> Option<bool> {
        match self {
            Term::Chain { rest, .. } => rest.first().map(|(op, _)| op.binds_tighter()),
            _ => None,
        }
    }
}
