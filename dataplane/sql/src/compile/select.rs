//! The select list of a read, and how its columns make an object.

use super::nested::{Hop, Join, Lists};
use super::{aggregate, column, column_of, encoding, mark, number_of_rows, position_encoding};
use crate::catalog::Entity;
use crate::query::{Query, Selected, ToOne};
use crate::shape::{Column, Encoding, Shape, label};
use crate::text::Sql;

/// A member of an object that has more than columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member {
    /// The column of this number, under its own label.
    Column(usize),
    /// An object, or null where the column `presence` is false. The label is `"name":`.
    Object { label: Box<str>, presence: usize, members: Vec<Member> },
    /// The rows of the level of this number.
    List { label: Box<str>, level: usize },
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
    let is_flat = query.select.iter().all(|it| matches!(it, Selected::Field(_) | Selected::Aggregate(_)));
    // columns of joined objects come on top
    let n_columns = query.select.len() + query.order.len() + 2;
    let mut writer = Writer { sql, hops, columns: Vec::with_capacity(n_columns), joins: Vec::new(), lists };
    let mut members = Vec::new();
    match is_flat {
        true => {
            query.select.iter().enumerate().for_each(|(n, selected)| writer.plain(0, entity, selected, n))
        }
        false => members = writer.members(0, entity, &query.select, &[]),
    }
    let Writer { sql, mut columns, joins, .. } = writer;
    let mut position = Vec::with_capacity(query.order.len() + 1);
    for term in &query.order {
        // before the first object each member is one column
        let plain =
            query.select.iter().take_while(|it| matches!(it, Selected::Field(_) | Selected::Aggregate(_)));
        let shown =
            plain.enumerate().find(|(_, it)| matches!(it, Selected::Field(field) if *field == term.field));
        position.push(shown.map_or(columns.len(), |(at, _)| at));
        if shown.is_none() {
            sql.lit(if columns.is_empty() { "select " } else { ", " });
            column(sql, entity, term.field);
            columns.push(Column { label: None, encoding: position_encoding(entity, term.field) });
        }
    }
    if let Some(version) = query.version {
        position.push(mark(sql, entity, &mut columns, version));
    }
    let count = query.count.then(|| {
        match hops.is_empty() {
            true => {
                // Uncorrelated, so PostgreSQL works it out once and not for each row, in the snapshot of the page.
                sql.lit(", (");
                number_of_rows(sql, query, None);
                sql.lit(")");
            }
            // once for each row around
            false => {
                sql.lit(", c.n");
            }
        }
        columns.push(Column { label: None, encoding: Encoding::Int8 });
        columns.len() - 1
    });
    Select { shape: Shape { columns, position, count }, members, joins }
}

struct Writer<'q, 'w> {
    sql: &'w mut Sql,
    hops: &'w [Hop<'q>],
    columns: Vec<Column>,
    joins: Vec<Join<'q>>,
    lists: &'w mut Lists<'q>,
}

impl<'q> Writer<'q, '_> {
    fn comma(&mut self) -> &mut Sql {
        self.sql.lit(if self.columns.is_empty() { "select " } else { ", " })
    }

    /// A member of one column, the `n`-th of its object, of the rows `t<alias>`.
    fn plain(&mut self, alias: u64, entity: &Entity, selected: &Selected, n: usize) {
        self.comma();
        match selected {
            Selected::Field(at) => {
                let field = &entity.fields[*at];
                column_of(self.sql, alias, entity, *at);
                self.columns
                    .push(Column { label: Some(label(&field.name)), encoding: encoding::of(&field.ty) });
            }
            Selected::Aggregate(it) => {
                match self.hops.is_empty() {
                    true => aggregate::write(self.sql, entity, it),
                    // worked out below, where each row around has its groups
                    false => aggregate::name(self.sql.lit("t."), n),
                }
                self.columns.push(Column { label: Some(label(&it.name)), encoding: it.encoding() });
            }
            Selected::One(_) | Selected::Many(_) => {}
        }
    }

    /// All members of an object. `ones`: by which references its rows were reached.
    fn members(
        &mut self,
        alias: u64,
        entity: &Entity,
        select: &'q [Selected],
        ones: &[&'q ToOne],
    ) -> Vec<Member> {
        let member = |(n, selected): (usize, &'q Selected)| match selected {
            Selected::Field(_) | Selected::Aggregate(_) => {
                self.plain(alias, entity, selected, n);
                Member::Column(self.columns.len() - 1)
            }
            Selected::One(one) => {
                let joined = self.joins.len() as u64 + 1;
                self.joins.push(Join {
                    around: alias,
                    alias: joined,
                    entity_around: ones.last().map(|one| &*one.entity),
                    one,
                });
                self.comma();
                let (_, inside) = one.link[0];
                column_of(self.sql, joined, &one.entity, inside);
                self.sql.lit(" is not null");
                self.columns.push(Column { label: None, encoding: Encoding::Bool });
                let presence = self.columns.len() - 1;
                let ones = [ones, &[&**one]].concat();
                let members = self.members(joined, &one.entity, &one.select, &ones);
                Member::Object { label: label(&one.name), presence, members }
            }
            Selected::Many(many) => {
                let mut key = Vec::with_capacity(many.link.len());
                for (around, _) in &many.link {
                    self.comma();
                    column_of(self.sql, alias, entity, *around);
                    key.push(self.columns.len());
                    let encoding = encoding::of(&entity.fields[*around].ty);
                    self.columns.push(Column { label: None, encoding });
                }
                let level = self.lists.push(self.hops, ones, many, key);
                Member::List { label: label(&many.name), level }
            }
        };
        select.iter().enumerate().map(member).collect()
    }
}
