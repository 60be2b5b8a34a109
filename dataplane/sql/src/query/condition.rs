//! Conditions of a question, and the values that they compare.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Reference;
use crate::catalog::{Entity, Link};
use crate::request::{Arithmetic, Comparison, Function};
use crate::text::Bind;

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
                    found.extend(&through.relations);
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
