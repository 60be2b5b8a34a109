//! What is wrong with a filter: which terms do not stand beside each other.

use rowgate_core::name::EntityName;

use super::signature::Takes;
use crate::request::{Arithmetic, Comparison, Function};
use crate::resolve::refusal::{Closure, Unknown};
use crate::resolve::value::ValueRefusal;

#[derive(Debug, Clone, PartialEq)]
pub enum FilterRefusal {
    /// `may_be_text`: it stands where a constant is likely, and may be a text without its quotes.
    NoField {
        unknown: Unknown,
        may_be_text: bool,
    },
    /// The scope may follow no such relationship.
    NoRelationship(Unknown),
    /// The entity where a relationship leads is closed now.
    Closed(Closure),
    /// A path leads to rows, of which there may be several, by this relationship.
    ManyRows(String),
    /// One condition names fields of several entities, and is not a comparison of two fields.
    SeveralEntities,
    /// Paths of a comparison lead to more rows than this.
    TooManyPaths {
        max: usize,
    },
    /// Of a condition on fields of another entity.
    Related {
        entity: EntityName,
        refusal: Box<FilterRefusal>,
    },
    /// What computes with numbers was given something else.
    NoNumber {
        of: Subject,
        found: Found,
    },
    /// `mod` of a float.
    Modulo {
        ty: String,
    },
    /// A constant beside a number of this type, in a computation.
    ConstantOf {
        of: Subject,
        ty: String,
        refusal: ValueRefusal,
    },
    /// A constant by itself.
    Constant {
        ty: String,
        refusal: ValueRefusal,
    },
    /// A constant that is compared.
    Compared {
        with: Found,
        refusal: ValueRefusal,
    },
    NumberOfArguments {
        function: Function,
        takes: usize,
        optional: usize,
        given: usize,
    },
    /// `n`: which one, from 1.
    Argument {
        n: usize,
        function: Function,
        takes: Takes,
        found: Found,
    },
    /// A position or a length below zero.
    Negative {
        function: Function,
    },
    /// A computation with null.
    Null,
    /// The value of an enum where no field of that type stands beside it.
    LooseEnum(String),
    /// `null` is compared by an order.
    NullOrder(Comparison),
    /// A value by itself where a condition stands; `None`: a constant.
    NoCondition(Option<Found>),
    Incomparable(Box<(Found, Found)>),
    /// The type has no such comparison.
    NoComparison {
        found: Found,
        op: Comparison,
    },
    /// More computations with decimals than one filter may have.
    Steps {
        max: usize,
    },
    /// More comparisons of ranges.
    Ranges {
        max: usize,
    },
}

/// What a filter computes, or compares.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    Field(String),
    Constant,
    Function(Function),
    Arithmetic(Arithmetic),
    Minus,
}

/// It, and the name of its type.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub subject: Subject,
    pub ty: String,
}
