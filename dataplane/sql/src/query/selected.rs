//! What the objects of an answer hold: fields, rows of other entities that belong to the row, and what a group of rows comes to.

use std::sync::Arc;

use super::Query;
use crate::catalog::{Entity, FieldType, Operators, TypeKind};
use crate::request::Comparison;
use crate::shape::Encoding;
use crate::text::Bind;

/// A member of an object. Those of a flat read are fields.
#[derive(Debug, Clone)]
pub enum Selected {
    /// Position in the entity's `fields`.
    Field(usize),
    /// Only where the query has a [`Group`].
    Aggregate(Box<Aggregate>),
    /// An object, or null: the row that this one refers to.
    One(Box<ToOne>),
    /// A list: the rows that refer to this one.
    Many(Box<ToMany>),
}

/// Fields that are equal in two rows that belong together: the one of the object around, and the one of the entity inside.
/// Never empty.
pub type Link = Vec<(usize, usize)>;

/// A row of another entity, of which there is at most one: by an index, or by the word of the manifest.
#[derive(Debug, Clone)]
pub struct ToOne {
    /// What the member is called.
    pub name: String,
    pub link: Link,
    pub entity: Arc<Entity>,
    /// No aggregates.
    pub select: Vec<Selected>,
}

/// Rows of another entity: for each row around them a page of their own.
#[derive(Debug, Clone)]
pub struct ToMany {
    /// What the member is called.
    pub name: String,
    pub link: Link,
    /// Its order is total, and it has no `version`.
    pub query: Query,
}

/// Rows with equal keys become one. Only the keys are selected as fields, and ordered by.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Positions in the entity's `fields`; empty: all rows are one group.
    pub keys: Vec<usize>,
    /// Conditions on groups, all of which hold.
    pub having: Vec<Having>,
}

/// A condition on what a group comes to.
#[derive(Debug, Clone)]
pub struct Having {
    pub aggregate: Aggregate,
    pub op: Comparison,
    /// Of the aggregate's type: [`Aggregate::oid`].
    pub value: Bind,
}

/// What a group of rows comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregate {
    /// What the member is called.
    pub name: String,
    pub(crate) function: AggregateFunction,
    /// `None`: rows are counted.
    pub(crate) field: Option<usize>,
    pub(crate) is_distinct: bool,
    ty: (TypeKind, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateFunction {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

const BIGINT: u32 = 20;
const NUMERIC: u32 = 1700;
const DOUBLE: u32 = 701;
const INTERVAL: u32 = 1186;

impl Aggregate {
    /// The number of rows.
    #[must_use]
    pub fn count(name: impl Into<String>) -> Aggregate {
        let ty = (TypeKind::Base, BIGINT);
        Aggregate {
            name: name.into(),
            function: AggregateFunction::Count,
            field: None,
            is_distinct: false,
            ty,
        }
    }

    /// `function` of a field of `entity`; `is_distinct`: equal values count once. `None`: the type has no such function, or no
    /// equality where one is needed.
    #[must_use]
    pub fn of(
        name: impl Into<String>,
        function: AggregateFunction,
        entity: &Entity,
        field: usize,
        is_distinct: bool,
    ) -> Option<Aggregate> {
        let of = &entity.fields.get(field)?.ty;
        let ty = gives(function, of).filter(|_| !is_distinct || of.operators != Operators::Nowhere)?;
        Some(Aggregate { name: name.into(), function, field: Some(field), is_distinct, ty })
    }

    /// How its value is read.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        Encoding::scalar(self.ty.0, self.ty.1)
    }

    /// The type of its value.
    #[must_use]
    pub fn oid(&self) -> u32 {
        self.ty.1
    }
}

/// The type that a function gives, as PostgreSQL declares it in `pg_catalog`.
fn gives(function: AggregateFunction, of: &FieldType) -> Option<(TypeKind, u32)> {
    let base = |oid| Some((TypeKind::Base, oid));
    match (function, of.kind, of.base_oid) {
        (AggregateFunction::Count, ..) => base(BIGINT),
        (AggregateFunction::Min | AggregateFunction::Max, TypeKind::Enum, oid) => Some((TypeKind::Enum, oid)),
        (_, kind, _) if kind != TypeKind::Base => None,
        (AggregateFunction::Sum, _, 21 | 23) => base(BIGINT),
        (AggregateFunction::Sum, _, BIGINT | NUMERIC) => base(NUMERIC),
        (AggregateFunction::Sum, _, oid @ (700 | DOUBLE | INTERVAL)) => base(oid),
        (AggregateFunction::Avg, _, 21 | 23 | BIGINT | NUMERIC) => base(NUMERIC),
        (AggregateFunction::Avg, _, 700 | DOUBLE) => base(DOUBLE),
        (AggregateFunction::Avg, _, INTERVAL) => base(INTERVAL),
        (AggregateFunction::Sum | AggregateFunction::Avg, ..) => None,
        // PostgreSQL has those of varchar as text's.
        (AggregateFunction::Min | AggregateFunction::Max, _, 25 | 1043) => base(25),
        (
            AggregateFunction::Min | AggregateFunction::Max,
            _,
            oid @ (BIGINT | 21 | 23 | 26 | 700 | DOUBLE | NUMERIC | 1042 | 1082 | 1083 | 1114 | 1184
            | INTERVAL | 1266),
        ) => base(oid),
        (AggregateFunction::Min | AggregateFunction::Max, ..) => None,
    }
}

impl Query {
    /// Calls `each` with every field of its own entity that is read for the answer: not those of its conditions.
    pub(crate) fn read_fields(&self, each: &mut impl FnMut(usize)) {
        for selected in &self.select {
            match selected {
                Selected::Field(field) => each(*field),
                Selected::Aggregate(aggregate) => aggregate.field.iter().copied().for_each(&mut *each),
                Selected::One(one) => one.link.iter().for_each(|(around, _)| each(*around)),
                Selected::Many(many) => many.link.iter().for_each(|(around, _)| each(*around)),
            }
        }
        if let Some(Group { keys, having }) = &self.group {
            keys.iter().copied().for_each(&mut *each);
            having.iter().filter_map(|having| having.aggregate.field).for_each(&mut *each);
        }
        self.order.iter().for_each(|term| each(term.field));
        self.version.iter().copied().for_each(each);
    }
}
