//! A query as a value: what is asked, and nothing of how it is spelt.

pub(super) mod conditions;
pub(super) mod generate;
pub(super) mod groups;
pub(super) mod input;
pub(super) mod intruder;
pub(super) mod spell;

use super::world::tables::{Field, Relationship};

/// Members of `Query`.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) is_mutation: bool,
    pub(super) roots: Vec<Root>,
}

/// Each has its key in the answer.
#[derive(Debug, Clone)]
pub(super) enum Root {
    Typename(String),
    /// The row of `table` that these values name.
    Row {
        key: String,
        table: usize,
        id: Vec<String>,
        members: Vec<Member>,
    },
    List(List),
    /// Text that is no part of the tenant's schema for any key, or for this one.
    Raw(String),
}

/// A member of a row's object.
#[derive(Debug, Clone)]
pub(super) enum Member {
    Typename(String),
    Value { key: String, field: &'static Field },
    One { key: String, relationship: &'static Relationship, members: Vec<Member> },
    Many(List),
    Raw(String),
}

#[derive(Debug, Clone)]
pub(super) struct List {
    /// Of all lists of a document.
    pub(super) number: usize,
    pub(super) key: String,
    pub(super) table: usize,
    /// `None`: all rows of the table.
    pub(super) relationship: Option<&'static Relationship>,
    pub(super) first: Option<i64>,
    pub(super) after: Option<After>,
    /// What must hold, if there is a filter.
    pub(super) filter: Option<Vec<Condition>>,
    pub(super) order: Vec<(&'static str, bool)>,
    pub(super) parts: Vec<Part>,
}

/// A cursor that an answer gave, and the row at which that page ended.
#[derive(Debug, Clone)]
pub(super) struct After {
    pub(super) cursor: String,
    pub(super) row: String,
}

/// A member of a connection.
#[derive(Debug, Clone)]
pub(super) enum Part {
    Typename(String),
    Items(String, Vec<Member>),
    EndCursor(String),
    HasNextPage(String),
    TotalCount(String),
    Groups(Groups),
}

#[derive(Debug, Clone)]
pub(super) struct Groups {
    pub(super) key: String,
    pub(super) by: Vec<&'static Field>,
    pub(super) first: Option<i64>,
    pub(super) parts: Vec<GroupPart>,
}

#[derive(Debug, Clone)]
pub(super) enum GroupPart {
    Typename(String),
    /// `None`: `__typename`.
    Fields(String, Vec<(String, Option<&'static Field>)>),
    Aggregations(String, Vec<(String, Option<Aggregate>)>),
}

#[derive(Debug, Clone)]
pub(super) struct Aggregate {
    pub(super) function: &'static str,
    pub(super) field: Option<&'static Field>,
    pub(super) distinct: bool,
    pub(super) having: Vec<(&'static str, String)>,
}

/// One member of a filter; several of them hold together.
#[derive(Debug, Clone)]
pub(super) enum Condition {
    And(Vec<Vec<Condition>>),
    Or(Vec<Vec<Condition>>),
    Not(Vec<Condition>),
    Field(&'static Field, Vec<(&'static str, Operand)>),
    /// Of the table's rows by this relationship one satisfies the conditions.
    Related(&'static Relationship, Vec<Condition>),
}

#[derive(Debug, Clone)]
pub(super) enum Operand {
    /// Counts as absent.
    Null,
    Flag(bool),
    One(String),
    Several(Vec<String>),
}
