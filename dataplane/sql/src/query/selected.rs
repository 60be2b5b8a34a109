//! What the objects of an answer hold: fields, rows of other entities that belong to the row, and what a group of rows comes to.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Query;
use crate::catalog::{Entity, FieldType, Link, Operators, TypeKind};
use crate::request::Comparison;
use crate::shape::Encoding;
use crate::text::Bind;

/// A member of an object. Those of a flat read are fields.
#[derive(Debug, Clone)]
pub enum Selected {
    /// Position in the entity's `fields`.
    Field(usize),
    /// A field under another name than its own.
    Alias { name: String, field: usize },
    /// The same in each object: `json` is a JSON value.
    Constant { name: String, json: String },
    /// An object of members of the same row, or of the same group.
    Object { name: String, select: Vec<Selected> },
    /// Only where the query has a [`Group`].
    Aggregate(Box<Aggregate>),
    /// An object, or null: the row that this one refers to.
    One(Box<ToOne>),
    /// The rows that refer to this one.
    Many(Box<ToMany>),
}

/// A row of another entity, of which there is at most one: by an index, or by the word of the manifest.
#[derive(Debug, Clone)]
pub struct ToOne {
    /// What the member is called.
    pub name: String,
    /// Positions of fields that are equal, of the entity around and of this one. Never empty.
    pub link: Vec<(usize, usize)>,
    pub entity: Arc<Entity>,
    /// No aggregates.
    pub select: Vec<Selected>,
}

/// Rows of another entity: for each row around them a page of their own.
#[derive(Debug, Clone)]
pub struct ToMany {
    pub link: Link,
    /// Never empty. The order of each is total, unless it has a [`Group`]; none has `count` or `version`.
    pub lists: Vec<Query>,
    pub form: Form,
}

/// What becomes of the lists of a [`ToMany`].
#[derive(Debug, Clone)]
pub enum Form {
    /// An array with the rows of the first list. A member `<name>@hasMore` that is true follows it where there are more rows, and
    /// a member `<name>@count` where there is a second list, which is [`Aggregate::count`] alone.
    Array { name: String },
    /// The one row of the first list, or null.
    Row { name: String },
    /// An object with these members.
    Connection { name: String, parts: Vec<(String, ConnectionPart)> },
}

/// A member of a connection. Numbers are positions in the lists of its [`ToMany`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionPart {
    /// An array with the rows, or groups.
    Items(usize),
    /// The cursor of the last row, or null without rows. Its list has a `binding`.
    EndCursor(usize),
    /// Whether there are more rows.
    HasNextPage(usize),
    /// The value of the first member of the first row: of a list that is one [`Aggregate::count`].
    Count(usize),
    /// A JSON value.
    Constant(String),
}

/// An answer that is made of several reads: an object with these members. Each `ToMany` has [`Link::All`].
#[derive(Debug, Clone)]
pub struct Document {
    pub members: Vec<DocumentMember>,
}

/// A member of a [`Document`].
#[derive(Debug, Clone)]
pub enum DocumentMember {
    Read(Box<ToMany>),
    /// The same in each answer: `json` is a JSON value.
    Constant {
        name: String,
        json: String,
    },
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
    /// Whether rows of other entities stand within its rows.
    #[must_use]
    pub fn has_rows_within(&self) -> bool {
        self.select.iter().any(|selected| matches!(selected, Selected::One(_) | Selected::Many(_)))
    }

    /// How many rows there are that pass the filter, on its page and on all others.
    #[must_use]
    pub fn number_of_rows(&self) -> Query {
        Query {
            select: vec![Selected::Aggregate(Box::new(Aggregate::count("count")))],
            group: Some(Group::default()),
            order: Vec::new(),
            after: None,
            take: 1,
            max_take: 1,
            count: false,
            binding: None,
            version: None,
            ..self.clone()
        }
    }

    /// Calls `each` with every field of its own entity that is read for the answer: not those of its conditions.
    pub(crate) fn read_fields(&self, each: &mut impl FnMut(usize)) {
        read_fields(&self.select, each);
        if let Some(Group { keys, having }) = &self.group {
            keys.iter().copied().for_each(&mut *each);
            having.iter().filter_map(|having| having.aggregate.field).for_each(&mut *each);
        }
        self.order.iter().for_each(|term| each(term.field));
        self.version.iter().copied().for_each(each);
    }
}

fn read_fields(select: &[Selected], each: &mut impl FnMut(usize)) {
    for selected in select {
        match selected {
            Selected::Field(field) | Selected::Alias { field, .. } => each(*field),
            Selected::Constant { .. } => {}
            Selected::Object { select, .. } => read_fields(select, each),
            Selected::Aggregate(aggregate) => aggregate.field.iter().copied().for_each(&mut *each),
            Selected::One(one) => one.link.iter().for_each(|(around, _)| each(*around)),
            Selected::Many(many) => many.link.around().into_iter().for_each(&mut *each),
        }
    }
}

impl ToMany {
    /// Adds the oids of all relations that its lists read.
    pub(crate) fn relations(&self, found: &mut BTreeSet<u32>) {
        if let Link::Through(through) = &self.link {
            found.insert(through.relation);
        }
        for query in &self.lists {
            found.extend(&query.entity.relations);
            query.filter.iter().for_each(|filter| filter.relations(found));
            relations(&query.select, found);
        }
    }
}

fn relations(select: &[Selected], found: &mut BTreeSet<u32>) {
    for selected in select {
        match selected {
            Selected::One(one) => {
                found.extend(&one.entity.relations);
                relations(&one.select, found);
            }
            Selected::Many(many) => many.relations(found),
            Selected::Object { select, .. } => relations(select, found),
            Selected::Field(_)
            | Selected::Alias { .. }
            | Selected::Constant { .. }
            | Selected::Aggregate(_) => {}
        }
    }
}
