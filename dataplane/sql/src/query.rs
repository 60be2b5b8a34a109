//! The question, with every name looked up: references into the catalog and bound values, no text of a caller.

mod aggregate;
mod selected;

use std::collections::BTreeSet;
use std::sync::Arc;

use rowgate_core::cursor::{Binding, Position};

use crate::catalog::{Entity, Link};
use crate::request::{Arithmetic, Comparison, Function};
use crate::text::Bind;
pub use aggregate::{Aggregate, Group};
pub use selected::{ConnectionPart, Document, DocumentMember, Form, Selected, ToMany, ToOne};

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

/// Rows to be made in one statement.
#[derive(Debug, Clone)]
pub struct Insert {
    pub entity: Arc<Entity>,
    /// The fields that any row names, in declared order. Never empty where there are several rows.
    pub fields: Vec<usize>,
    /// Never empty; each as long as `fields`, `None` where the row does not name the field.
    pub rows: Vec<Vec<Option<Bind>>>,
    /// The fields of the answer; empty: nothing is read back.
    pub returning: Vec<usize>,
    /// Fields to be known beside the answer: see [`Upsert::marks`].
    pub marks: Vec<usize>,
}

/// One row to be changed, or made where there is none.
#[derive(Debug, Clone)]
pub struct Upsert {
    pub entity: Arc<Entity>,
    pub key: Predicate,
    /// What fields of a row that is there become, `None` being their default; empty: none is changed.
    pub set: Vec<(usize, Option<Bind>)>,
    /// The fields of a row that is not there, key included; `None`: none is made.
    pub insert: Option<Vec<(usize, Bind)>>,
    /// A row that is there already is an error, and not passed over.
    pub is_plain: bool,
    /// The row is looked for by itself: an update that gives no row back does not say that there is none.
    pub looks: bool,
    /// And held meanwhile, as the update would: nobody else changes or removes it between.
    pub holds: bool,
    pub guard: Guard,
    /// The fields of the answer; empty: nothing is read back.
    pub returning: Vec<usize>,
    /// The fields that a new row would need besides: demanded only where the row is not there.
    pub missing: Vec<String>,
    /// The versions, an array, one of which the row must have; `None`: nobody said which.
    pub expected: Option<Bind>,
    /// The field that holds the version, and the one that hides the row from reads, to be known beside the answer.
    /// Empty: the answer is not what a read of the row would give, or nobody could know that.
    pub marks: Vec<usize>,
    pub no_row: NoRowReason,
    /// Where one is not true nothing is written.
    pub checks: Vec<Check>,
}

/// Whether policies may keep a caller from a row that it reads: PostgreSQL then does nothing, as if there were no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Guard {
    /// Not that anybody could tell.
    #[default]
    None,
    /// Perhaps. Where nothing was done the statement may be asked once more, to tell: see [`Upsert::told_apart`].
    Unseen,
    /// The statement tells such a row from one that is not there.
    Seen,
}

impl Upsert {
    /// The same write, which also tells a row that is read and kept from it by policies, where that can be.
    #[must_use]
    pub fn told_apart(self) -> Upsert {
        match self.guard {
            Guard::None => self,
            Guard::Unseen | Guard::Seen => Upsert { looks: true, holds: false, guard: Guard::Seen, ..self },
        }
    }
}

impl Delete {
    /// See [`Upsert::told_apart`].
    #[must_use]
    pub fn told_apart(self) -> Delete {
        match self.guard {
            Guard::None => self,
            Guard::Unseen | Guard::Seen => Delete { looks: true, guard: Guard::Seen, ..self },
        }
    }
}

/// What PostgreSQL judges of a key field's values alone.
#[derive(Debug, Clone)]
pub enum Check {
    /// The column would hold the value that the row is named by as it is.
    Kept { field: usize, path: Bind },
    /// The body has the value that the row is named by, however it is written.
    Same { field: usize, path: Bind, body: Bind },
}

/// What it means when a statement ran and did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRowReason {
    /// There is no such row that the caller could reach.
    NotFound,
    /// Somebody makes or removes the row at this moment, or it is hidden: it is looked for again.
    Again,
    /// The row is there, and only a new one was asked for.
    Taken,
    /// A trigger has passed it over, and may have done something else instead, so that nothing is tried again.
    PassedOver,
    /// The row has another version than the body says, or is not there.
    Stale,
    /// The row has none of the versions that the request names beside the body, or is not there.
    Unmatched,
}

/// One row to be deleted.
#[derive(Debug, Clone)]
pub struct Delete {
    pub entity: Arc<Entity>,
    pub key: Predicate,
    /// See [`Upsert::looks`].
    pub looks: bool,
    pub guard: Guard,
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

/// As many bytes as functions of texts in a filter may leave behind on one row, where they are many. While one of them works it
/// may hold 12 copies of its text besides.
pub const MAX_BUILT: u64 = 16 << 20;

/// A condition. It is SQL's three-valued logic: `ne` is `<>`, so a NULL equals nothing and differs from nothing, as
/// users of PostgREST and Data API builder know it (OData would have `null ne 'x'` true); `ne null` finds the rest.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    All(Vec<Predicate>),
    Any(Vec<Predicate>),
    Not(Box<Predicate>),
    IsNull {
        value: Value,
        negated: bool,
    },
    Compare {
        left: Value,
        op: Comparison,
        right: Value,
    },
    /// Never empty.
    OneOf {
        value: Value,
        values: Vec<Value>,
    },
    /// A boolean.
    Is(Value),
    /// `inner` is false or unknown.
    NotTrue(Box<Predicate>),
    /// About rows of another entity.
    Related(Box<Related>),
    /// `inner`, for rows on which it builds up no more than [`MAX_BUILT`]; it raises for any other. `copies` says
    /// how often it copies the value of each field, which is a text.
    Within {
        copies: Vec<(usize, u64)>,
        inner: Box<Predicate>,
    },
}

/// There is a row of `entity`, among those that belong to the row, for which `inner` holds.
#[derive(Debug, Clone)]
pub struct Related {
    pub link: Link,
    pub entity: Arc<Entity>,
    /// Over fields of `entity`; `None`: any row.
    pub inner: Option<Predicate>,
    pub form: RelatedForm,
    /// There is no such row.
    pub is_negated: bool,
}

impl PartialEq for Related {
    fn eq(&self, other: &Related) -> bool {
        let Related { link, entity, inner, form, is_negated } = self;
        // of one catalog, where a name is one entity
        entity.name == other.entity.name
            && (link, inner, form, is_negated) == (&other.link, &other.inner, &other.form, &other.is_negated)
    }
}

/// What becomes of the condition where no row belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelatedForm {
    /// It is false.
    Any,
    /// At most one row belongs, and it is false.
    One,
    /// At most one row belongs, and it is unknown.
    Value,
}

impl Predicate {
    /// Where it is negated: what is unknown, because no row belongs, must stay so.
    pub(crate) fn keep_unknown(&mut self) {
        match self {
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts.iter_mut().for_each(Predicate::keep_unknown)
            }
            Predicate::Not(inner) | Predicate::Within { inner, .. } => inner.keep_unknown(),
            Predicate::Related(related) if related.form == RelatedForm::One => {
                related.form = RelatedForm::Value;
                related.inner.iter_mut().for_each(Predicate::keep_unknown);
            }
            _ => {}
        }
    }

    /// Adds the oids of all relations that its conditions read beside the entity itself.
    pub(crate) fn relations(&self, found: &mut BTreeSet<u32>) {
        match self {
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts.iter().for_each(|part| part.relations(found))
            }
            Predicate::Not(inner) | Predicate::NotTrue(inner) | Predicate::Within { inner, .. } => {
                inner.relations(found);
            }
            Predicate::Related(related) => {
                if let Link::Through(through) = &related.link {
                    found.insert(through.relation);
                }
                found.extend(&related.entity.relations);
                related.inner.iter().for_each(|inner| inner.relations(found));
            }
            Predicate::IsNull { value, .. } | Predicate::Is(value) => value.relations(found),
            Predicate::Compare { left, right, .. } => {
                left.relations(found);
                right.relations(found);
            }
            Predicate::OneOf { value, values } => {
                value.relations(found);
                values.iter().for_each(|value| value.relations(found));
            }
        }
    }

    /// Calls `each` with every field that the condition reads.
    pub(crate) fn fields(&self, each: &mut impl FnMut(usize)) {
        match self {
            Predicate::All(parts) | Predicate::Any(parts) => parts.iter().for_each(|part| part.fields(each)),
            Predicate::Not(inner) | Predicate::NotTrue(inner) | Predicate::Within { inner, .. } => {
                inner.fields(each)
            }
            Predicate::Related(related) => related.link.around().into_iter().for_each(each),
            Predicate::IsNull { value, .. } | Predicate::Is(value) => value.fields(each),
            Predicate::Compare { left, right, .. } => {
                left.fields(each);
                right.fields(each);
            }
            Predicate::OneOf { value, values } => {
                value.fields(each);
                values.iter().for_each(|value| value.fields(each));
            }
        }
    }
}

impl PartialEq for Reference {
    fn eq(&self, other: &Reference) -> bool {
        let Reference { from, link, entity } = self;
        // of one catalog, where a name is one entity
        entity.name == other.entity.name && (from, link) == (&other.from, &other.link)
    }
}

impl Value {
    /// Adds the oids of the relations that it reads beside the entity itself.
    fn relations(&self, found: &mut BTreeSet<u32>) {
        // it stands by itself on one side of a comparison
        if let Value::Referenced(of) = self {
            found.extend(of.references.iter().flat_map(|reference| &reference.entity.relations));
        }
    }

    /// Calls `each` with every field that the value is made of.
    pub(crate) fn fields(&self, each: &mut impl FnMut(usize)) {
        match self {
            Value::Field(field) => each(*field),
            Value::Bind(_) => {}
            Value::Referenced(of) => {
                let first = of.references.first().into_iter().flat_map(|reference| &reference.link);
                first.for_each(|(around, _)| each(*around));
            }
            Value::Call { arguments, .. } => arguments.iter().for_each(|argument| argument.fields(each)),
            Value::Chain { first, rest } => {
                first.fields(each);
                rest.iter().for_each(|(_, link)| link.fields(each));
            }
            Value::Negate(inner) | Value::Cast(inner, _) => inner.fields(each),
        }
    }

    /// Whether it differs from row to row.
    pub(crate) fn has_field(&self) -> bool {
        let mut found = false;
        self.fields(&mut |_| found = true);
        found
    }
}

/// What a condition compares. The types fit; casts that PostgreSQL would not make by itself are written out.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Field(usize),
    Bind(Bind),
    Call {
        function: Function,
        arguments: Vec<Value>,
    },
    /// From left to right; links of the same level.
    Chain {
        first: Box<Value>,
        rest: Vec<(Arithmetic, Value)>,
    },
    Negate(Box<Value>),
    Cast(Box<Value>, Cast),
    Referenced(Box<Referenced>),
}

/// A field of another row, or null where there is no such row.
#[derive(Debug, Clone, PartialEq)]
pub struct Referenced {
    /// Never empty; each is reached from the one before, the first from the row. The field is the last one's.
    pub references: Vec<Reference>,
    pub field: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cast {
    /// `text`: from `varchar`, `char(n)` (whose blanks at the end are no text), `name`.
    Text,
    /// `integer`: from `bigint`, which may be out of range.
    Integer,
    /// A moment with a zone, as it reads in UTC without one.
    Utc,
}
