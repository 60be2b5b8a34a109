//! The question, with every name looked up: references into the catalog and bound values, no text of a caller.

use std::sync::Arc;

use rowgate_core::cursor::{Binding, Position};

use crate::catalog::Entity;
use crate::request::Comparison;
use crate::text::Bind;

/// A read of one entity. Field numbers are positions in `entity.fields`.
#[derive(Debug, Clone)]
pub struct Query {
    pub entity: Arc<Entity>,
    /// The fields of the answer, in its order.
    pub select: Vec<usize>,
    pub filter: Option<Predicate>,
    /// Total: ends with the key. Empty for a row that is named by its key.
    pub order: Vec<OrderTerm>,
    /// One value per order term; the rows wanted stand after it.
    pub after: Option<Position>,
    /// How many rows the caller wants.
    pub take: usize,
    /// How many rows any page of this tenant may have.
    pub max_take: usize,
    /// What cursors of this question are bound to; `None` where no page can follow.
    pub binding: Option<Binding>,
}

/// Ascending puts NULLs last and descending first, as PostgreSQL does when nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderTerm {
    pub field: usize,
    pub descending: bool,
}

/// A condition. It is SQL's three-valued logic: `ne` is `<>`, so a NULL equals nothing and differs from nothing, as
/// users of PostgREST and Data API builder know it (OData would have `null ne 'x'` true); `ne null` finds the rest.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    All(Vec<Predicate>),
    Any(Vec<Predicate>),
    Not(Box<Predicate>),
    IsNull {
        field: usize,
        negated: bool,
    },
    Compare {
        field: usize,
        op: Comparison,
        with: Comparand,
    },
    /// Never empty.
    OneOf {
        field: usize,
        values: Vec<Bind>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Comparand {
    Value(Bind),
    Field(usize),
}
