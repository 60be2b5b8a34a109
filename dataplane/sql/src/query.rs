//! The question, with every name looked up: references into the catalog and bound values, no text of a caller.

mod aggregate;
mod condition;
mod selected;
mod write;

use std::sync::Arc;

use rowgate_core::cursor::{Binding, Position};

use crate::catalog::Entity;
use crate::text::Bind;
pub use aggregate::{Aggregate, Group};
pub use condition::{Cast, MAX_BUILT, Predicate, Referenced, Related, RelatedForm, Value};
pub use selected::{ConnectionPart, Document, DocumentMember, Form, Selected, ToMany, ToOne};
pub use write::{Check, Delete, Guard, Insert, NoRowReason, Upsert};

/// A read of one entity, and of rows that belong to its own. Field numbers are positions in `entity.fields`.
#[derive(Debug, Clone)]
pub struct Query {
    pub entity: Arc<Entity>,
    /// The members of the answer's objects, in their order.
    pub select: Vec<Selected>,
    pub filter: Option<Predicate>,
    /// `None`: each row is an object of its own.
    pub group: Option<Group>,
    /// Total: ends with the key. Empty for a row that is named by its key, and where all rows are one group.
    pub order: Vec<OrderTerm>,
    /// The rows of other entities by whose fields the order goes, each behind the one that it is reached from.
    pub order_references: Vec<Reference>,
    /// One value per order term; the rows wanted stand after it.
    pub after: Option<Position>,
    /// How many rows the caller wants.
    pub take: usize,
    /// How many rows any page of this tenant may have.
    pub max_take: usize,
    /// Whether each row also says how many rows pass the filter, on this page and on all others.
    pub count: bool,
    /// What cursors of this question are bound to; `None` where no page can follow.
    pub binding: Option<Binding>,
    /// The field that holds the row's version, to be known beside the answer; only where `order` is empty.
    pub version: Option<usize>,
}

/// Ascending puts NULLs last and descending first, as PostgreSQL does when nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderTerm {
    /// Of the entity, or of what a group is, or of the reference.
    pub field: usize,
    /// The number of the reference whose field it is; `None`: the row's own. Without such a row the field counts as NULL.
    pub reference: Option<usize>,
    pub descending: bool,
}

/// A row of another entity, of which there is at most one: by an index, or by the word of the manifest.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The number of the reference that it is reached from; `None`: the row itself.
    pub from: Option<usize>,
    /// Positions of fields that are equal, of the entity around and of this one. Never empty.
    pub link: Vec<(usize, usize)>,
    pub entity: Arc<Entity>,
}

impl PartialEq for Reference {
    fn eq(&self, other: &Reference) -> bool {
        let Reference { from, link, entity } = self;
        // of one catalog, where a name is one entity
        entity.name == other.entity.name && (from, link) == (&other.from, &other.link)
    }
}

/// One call of a routine.
#[derive(Debug, Clone)]
pub struct Call {
    /// It has a [`Routine`](crate::catalog::Routine).
    pub entity: Arc<Entity>,
    /// What is named in the call; parameters that are not take their default.
    pub arguments: Vec<Argument>,
    /// False: what it gives is not told.
    pub keeps_rows: bool,
}

/// A parameter and its value.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Position in the routine's `params`.
    pub param: usize,
    /// `None`: it comes out only, and its place holds a NULL.
    pub value: Option<Bind>,
}
