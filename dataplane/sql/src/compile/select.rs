//! The select list of a read, and how its columns make an object.

use super::nested::{self, Hop, Join, Lists};
use super::{alias_of, column_of, encoding, number_of_rows};
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
    /// An object, or null where the column `presence` is null.
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
    pub(super) asked: Asked,
}

/// Which fields there are columns of already: the number of the row, the field, the column. PostgreSQL is asked for each once.
#[derive(Default)]
pub(super) struct Asked(Vec<(u64, usize, usize)>);

impl Asked {
    /// Asks for a field of the rows `t<alias>`, and says where it stands among `columns`.
    pub(super) fn column(
        &mut self,
        sql: &mut Sql,
        columns: &mut Vec<Column>,
        (alias, entity): (u64, &Entity),
        field: usize,
    ) -> usize {
        let found = self.0.iter().find(|(of, at, _)| (*of, *at) == (alias, field));
        if let Some((_, _, column)) = found {
            return *column;
        }
        sql.lit(if columns.is_empty() { "select " } else { ", " });
        column_of(sql, alias, entity, field);
        columns.push(Column { label: None, encoding: encoding::of(&entity.fields[field].ty) });
        self.0.push((alias, field, columns.len() - 1));
        columns.len() - 1
    }
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
    let asked = Asked::default();
    let mut writer = Writer { sql, group, hops, columns, asked, joins: nested::of_order(query), lists };
    let mut members = Vec::new();
    match !query.select.is_empty() && query.select.iter().all(is_column) {
        true => query.select.iter().for_each(|selected| writer.plain(0, entity, selected)),
        false => members = writer.members(0, entity, &query.select, &[]),
    }
    let Writer { sql, mut columns, mut asked, joins, .. } = writer;
    // where a list within rows ends is asked for by its cursor alone
    let is_placed = hops.is_empty() || query.binding.is_some();
    let mut position = Vec::with_capacity(query.order.len() + 1);
    for term in query.order.iter().filter(|_| is_placed) {
        let row = (alias_of(term), query.ordered(term));
        position.push(asked.column(sql, &mut columns, row, term.field));
    }
    if let Some(version) = query.version {
        position.push(asked.column(sql, &mut columns, (0, entity), version));
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
    Select { shape: Shape { columns, position, count }, members, joins, asked }
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
    asked: Asked,
    joins: Vec<Join<'q>>,
    lists: &'w mut Lists<'q>,
}

impl<'q> Writer<'q, '_> {
    fn comma(&mut self) -> &mut Sql {
        self.sql.lit(if self.columns.is_empty() { "select " } else { ", " })
    }

    /// The column of a field, of the rows `t<alias>`.
    fn column(&mut self, alias: u64, entity: &Entity, field: usize) -> usize {
        self.asked.column(self.sql, &mut self.columns, (alias, entity), field)
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
        self.asked.0.push((alias, at, self.columns.len()));
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
                let with = [ones, &[&**one]].concat();
                let members = self.members(joined, &one.entity, &one.select, &with);
                // what it is found by is null where there is no row
                let (_, inside) = one.link[0];
                let presence = Some(self.column(joined, &one.entity, inside));
                Member::Object { label: label(&one.name), presence, members }
            }
            Selected::Many(many) => {
                let around = many.link.around().into_iter();
                let key: Vec<usize> = around.map(|around| self.column(alias, entity, around)).collect();
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
