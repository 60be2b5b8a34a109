//! The select list of a read, and how its columns make an object.

use super::nested::{self, Hop, Join, Lists};
use super::{column_of, encoding, mark, number_of_rows, ordered, position_encoding};
use crate::catalog::Entity;
use crate::query::{ConnectionPart, Form, Group, Query, Selected, ToMany, ToOne};
use crate::shape::{Column, Encoding, Shape, label};
use crate::text::Sql;

/// A member of an object that has more than columns. A label is `"name":`. Levels are numbers of [`CompiledLevel`](super::CompiledLevel)s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member {
    /// The column of this number, under its own label.
    Column(usize),
    /// With its label, as it is.
    Constant(Box<str>),
    /// An object, or null where the column `presence` is false.
    Object { label: Box<str>, presence: Option<usize>, members: Vec<Member> },
    /// The rows of a level.
    List { label: Box<str>, level: usize, more: Box<str>, count: Option<(Box<str>, usize)> },
    /// The first row of a level, or null.
    Row { label: Box<str>, level: usize },
    /// An object of parts, each with its label; their numbers are levels.
    Connection { label: Box<str>, parts: Vec<(Box<str>, ConnectionPart)> },
}

impl Member {
    /// What becomes of the lists of `many`, whose levels begin with `first`.
    pub(super) fn of(many: &ToMany, first: usize) -> Member {
        match &many.form {
            Form::Array { name } => Member::List {
                label: label(name),
                level: first,
                more: label(&format!("{name}@hasMore")),
                count: (1 < many.lists.len()).then(|| (label(&format!("{name}@count")), first + 1)),
            },
            Form::Row { name } => Member::Row { label: label(name), level: first },
            Form::Connection { name, parts } => {
                let part = |(name, part): &(String, ConnectionPart)| {
                    let part = match part {
                        ConnectionPart::Items(at) => ConnectionPart::Items(first + at),
                        ConnectionPart::EndCursor(at) => ConnectionPart::EndCursor(first + at),
                        ConnectionPart::HasNextPage(at) => ConnectionPart::HasNextPage(first + at),
                        ConnectionPart::Count(at) => ConnectionPart::Count(first + at),
                        ConnectionPart::Constant(json) => ConnectionPart::Constant(json.clone()),
                    };
                    (label(name), part)
                };
                Member::Connection { label: label(name), parts: parts.iter().map(part).collect() }
            }
        }
    }

    pub(super) fn constant(name: &str, json: &str) -> Member {
        Member::Constant(format!("{}{json}", label(name)).into())
    }
}

/// A select list that was written.
pub(super) struct Select<'q> {
    pub(super) shape: Shape,
    /// Empty where the labelled columns are the object.
    pub(super) members: Vec<Member>,
    pub(super) joins: Vec<Join<'q>>,
}

/// Writes the members asked for, then what the position needs and does not find among them. `hops`: where the query stands
/// among those around it.
pub(super) fn write<'q>(
    sql: &mut Sql,
    query: &'q Query,
    hops: &[Hop<'q>],
    lists: &mut Lists<'q>,
) -> Select<'q> {
    let entity = &*query.entity;
    let is_column = |it: &Selected| {
        matches!(it, Selected::Field(_) | Selected::Alias { .. } | Selected::Aggregate { .. })
    };
    // columns of joined objects come on top
    let n_columns = query.select.len() + query.order.len() + 2;
    let columns = Vec::with_capacity(n_columns);
    let group = query.group.as_ref();
    let mut writer = Writer { sql, group, hops, columns, joins: nested::of_order(query), lists };
    let mut members = Vec::new();
    match !query.select.is_empty() && query.select.iter().all(is_column) {
        true => query.select.iter().for_each(|selected| writer.plain(0, entity, selected)),
        false => members = writer.members(0, entity, &query.select, &[]),
    }
    let Writer { sql, mut columns, joins, .. } = writer;
    let mut position = Vec::with_capacity(query.order.len() + 1);
    for term in &query.order {
        // before the first object each member is one column
        let plain = query.select.iter().take_while(|it| is_column(it));
        let is_shown = |it: &Selected| term.reference.is_none() && place(group, it) == Some(term.field);
        let shown = plain.enumerate().find(|(_, it)| is_shown(it));
        position.push(shown.map_or(columns.len(), |(at, _)| at));
        if shown.is_none() {
            sql.lit(if columns.is_empty() { "select " } else { ", " });
            ordered(sql, query, term);
            columns
                .push(Column { label: None, encoding: position_encoding(query.ordered(term), term.field) });
        }
    }
    if let Some(version) = query.version {
        position.push(mark(sql, entity, &mut columns, version));
    }
    let count = query.count.then(|| {
        // Uncorrelated, so PostgreSQL works it out once and not for each row, in the snapshot of the page.
        sql.lit(", (");
        number_of_rows(sql, query);
        sql.lit(")");
        columns.push(Column { label: None, encoding: Encoding::Int8 });
        columns.len() - 1
    });
    if columns.is_empty() {
        // what has no column is no object: a statement has one at least
        sql.lit("select true");
        columns.push(Column { label: None, encoding: Encoding::Bool });
    }
    Select { shape: Shape { columns, position, count }, members, joins }
}

/// Where a member of one column stands among the fields of the entity, or of what a group is.
fn place(group: Option<&Group>, selected: &Selected) -> Option<usize> {
    match (selected, group) {
        (Selected::Field(at) | Selected::Alias { field: at, .. }, None) => Some(*at),
        (Selected::Field(at) | Selected::Alias { field: at, .. }, Some(group)) => group.key(*at),
        (Selected::Aggregate { number, .. }, Some(group)) => Some(group.aggregate(*number)),
        _ => None,
    }
}

struct Writer<'q, 'w> {
    sql: &'w mut Sql,
    group: Option<&'q Group>,
    hops: &'w [Hop<'q>],
    columns: Vec<Column>,
    joins: Vec<Join<'q>>,
    lists: &'w mut Lists<'q>,
}

impl<'q> Writer<'q, '_> {
    fn comma(&mut self) -> &mut Sql {
        self.sql.lit(if self.columns.is_empty() { "select " } else { ", " })
    }

    /// A member of one column, of the rows `t<alias>`.
    fn plain(&mut self, alias: u64, entity: &Entity, selected: &Selected) {
        let name = match selected {
            Selected::Field(at) => &entity.fields[*at].name,
            Selected::Alias { name, .. } | Selected::Aggregate { name, .. } => name,
            Selected::Constant { .. } | Selected::Object { .. } | Selected::One(_) | Selected::Many(_) => {
                return;
            }
        };
        let at = place(self.group, selected).expect("only keys and aggregates are selected of a group");
        let entity = self.group.map_or(entity, |group| &group.entity);
        self.comma();
        column_of(self.sql, alias, entity, at);
        self.columns.push(Column { label: Some(label(name)), encoding: encoding::of(&entity.fields[at].ty) });
    }

    /// All members of an object. `ones`: by which references its rows were reached.
    fn members(
        &mut self,
        alias: u64,
        entity: &Entity,
        select: &'q [Selected],
        ones: &[&'q ToOne],
    ) -> Vec<Member> {
        let member = |selected: &'q Selected| match selected {
            Selected::Field(_) | Selected::Alias { .. } | Selected::Aggregate { .. } => {
                self.plain(alias, entity, selected);
                Member::Column(self.columns.len() - 1)
            }
            Selected::Constant { name, json } => Member::constant(name, json),
            Selected::Object { name, select } => {
                let members = self.members(alias, entity, select, ones);
                Member::Object { label: label(name), presence: None, members }
            }
            Selected::One(one) => {
                let joined = self.joins.len() as u64 + 1;
                self.joins.push(Join {
                    around: alias,
                    alias: joined,
                    entity_around: ones.last().map(|one| &*one.entity),
                    link: &one.link,
                    entity: &one.entity,
                    read: one.read_fields(),
                });
                self.comma();
                let (_, inside) = one.link[0];
                column_of(self.sql, joined, &one.entity, inside);
                self.sql.lit(" is not null");
                self.columns.push(Column { label: None, encoding: Encoding::Bool });
                let presence = Some(self.columns.len() - 1);
                let ones = [ones, &[&**one]].concat();
                let members = self.members(joined, &one.entity, &one.select, &ones);
                Member::Object { label: label(&one.name), presence, members }
            }
            Selected::Many(many) => {
                let around = many.link.around();
                let mut key = Vec::with_capacity(around.len());
                for around in around {
                    self.comma();
                    column_of(self.sql, alias, entity, around);
                    key.push(self.columns.len());
                    let encoding = encoding::of(&entity.fields[around].ty);
                    self.columns.push(Column { label: None, encoding });
                }
                let first = self.lists.next_number();
                for query in &many.lists {
                    self.lists.push(self.hops, ones, (&many.link, query), key.clone());
                }
                Member::of(many, first)
            }
        };
        select.iter().map(member).collect()
    }
}
