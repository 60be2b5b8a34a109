//! What the objects of an answer hold: fields, rows of other entities that belong to the row, and what a group of rows comes to.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Aggregate, Group, OrderTerm, Query};
use crate::catalog::{Entity, Link};

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
    /// Only where the query has a [`Group`], of whose aggregates it is the one of this number.
    Aggregate { name: String, number: usize },
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
    /// Never empty. The order of each is total, unless it has a [`Group`]; none has `count` or `version`. A list of groups without a
    /// `binding` is whole: where it has more of them than are taken, there is no answer.
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

impl Query {
    /// Whose field a term of the order is: of a reference, of a group where rows are grouped, or of the row.
    pub(crate) fn ordered(&self, term: &OrderTerm) -> &Entity {
        match (term.reference, &self.group) {
            (Some(number), _) => &self.order_references[number].entity,
            (None, Some(group)) => &group.entity,
            (None, None) => &self.entity,
        }
    }

    /// The fields of its own by which rows are joined to it.
    pub(crate) fn joined_by(&self) -> Vec<usize> {
        let first = self.order_references.iter().filter(|reference| reference.from.is_none());
        let mut fields: Vec<usize> = first.flat_map(|it| &it.link).map(|(left, _)| *left).collect();
        joined_by(&self.select, &mut fields);
        fields
    }

    /// Adds the oids of the relations that its filter and its order read beside those of the entity.
    pub(crate) fn relations_beside(&self, found: &mut BTreeSet<u32>) {
        found.extend(self.order_references.iter().flat_map(|reference| &reference.entity.relations));
        self.filter.iter().for_each(|filter| filter.relations(found));
    }

    /// Whether rows of other entities stand within its rows.
    #[must_use]
    pub fn has_rows_within(&self) -> bool {
        self.select.iter().any(|selected| matches!(selected, Selected::One(_) | Selected::Many(_)))
    }

    /// How many rows there are that pass the filter, on its page and on all others.
    #[must_use]
    pub fn number_of_rows(&self) -> Query {
        Query {
            select: vec![Selected::Aggregate { name: "count".to_owned(), number: 0 }],
            group: Some(Group::new(&self.entity, Vec::new(), vec![Aggregate::count("count")])),
            order: Vec::new(),
            order_references: Vec::new(),
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
        match &self.group {
            Some(group) => group.read_fields(each),
            None => {
                let own = self.order.iter().filter(|term| term.reference.is_none());
                own.for_each(|term| each(term.field));
                let first = self.order_references.iter().filter(|reference| reference.from.is_none());
                first.flat_map(|reference| &reference.link).for_each(|(around, _)| each(*around));
            }
        }
        self.version.iter().copied().for_each(each);
    }
}

fn read_fields(select: &[Selected], each: &mut impl FnMut(usize)) {
    for selected in select {
        match selected {
            Selected::Field(field) | Selected::Alias { field, .. } => each(*field),
            Selected::Constant { .. } | Selected::Aggregate { .. } => {}
            Selected::Object { select, .. } => read_fields(select, each),
            Selected::One(one) => one.link.iter().for_each(|(around, _)| each(*around)),
            Selected::Many(many) => many.link.around().into_iter().for_each(&mut *each),
        }
    }
}

fn joined_by(select: &[Selected], fields: &mut Vec<usize>) {
    for selected in select {
        match selected {
            Selected::One(one) => fields.extend(one.link.iter().map(|(left, _)| *left)),
            Selected::Object { select, .. } => joined_by(select, fields),
            _ => {}
        }
    }
}

impl ToOne {
    /// The fields that are read of its row.
    pub(crate) fn read_fields(&self) -> Vec<usize> {
        let mut fields = Vec::new();
        read_fields(&self.select, &mut |field| fields.push(field));
        fields
    }
}

impl ToMany {
    /// Adds the oids of all relations that its lists read.
    pub(crate) fn relations(&self, found: &mut BTreeSet<u32>) {
        if let Link::Through(through) = &self.link {
            found.extend(&through.relations);
        }
        for query in &self.lists {
            found.extend(&query.entity.relations);
            query.relations_beside(found);
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
            | Selected::Aggregate { .. } => {}
        }
    }
}
