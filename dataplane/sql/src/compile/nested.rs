//! Rows within rows, as flat statements for one batch: a row that another one refers to is joined in the statement of that one,
//! and the rows that refer to one are a statement of their own for each level, however many rows there are. It finds the rows
//! around once more, in the same snapshot, and gives beside each row by what it belongs to one of those.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::select::{self, Member};
use super::{aggregate, column, column_of, encoding, limit, number_of_rows, operator, order, rows};
use crate::catalog::Entity;
use crate::query::{Link, Query, Selected, ToMany, ToOne};
use crate::shape::{Column, Shape};
use crate::text::Sql;

/// The rows of a list in each row of another level, or of the read itself.
#[derive(Debug, Clone)]
pub struct CompiledLevel {
    pub sql: Sql,
    pub shape: Arc<Shape>,
    pub entity: Arc<Entity>,
    /// As [`CompiledRead::members`](super::CompiledRead::members).
    pub members: Vec<Member>,
    /// Rows of each list; the SQL may give one more or several.
    pub take: usize,
    /// The level whose rows hold the lists; `None`: the read.
    pub around: Option<usize>,
    /// The columns of `around` that the columns `key` repeat, byte by byte: a row belongs to those rows that have its own.
    pub key_around: Vec<usize>,
    pub key: Vec<usize>,
}

/// From the rows around to the rows of a list.
#[derive(Clone)]
pub(super) struct Hop<'q> {
    /// The references on the way, from the rows around on.
    ones: Vec<&'q ToOne>,
    pub(super) many: &'q ToMany,
}

/// Rows `p` of this entity, around those that are equal in the link's fields.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    entity: &'a Entity,
    link: &'a Link,
}

impl Around<'_> {
    /// Writes that a row `t` of `entity` belongs to `p`.
    pub(super) fn belongs(self, sql: &mut Sql, entity: &Entity) {
        for (i, (around, inside)) in self.link.iter().enumerate() {
            sql.lit(if i == 0 { "" } else { " and " });
            column(sql, entity, *inside);
            operator(sql, Some(&entity.fields[*inside].ty), "=");
            sql.lit("p.").ident(&self.entity.fields[*around].column);
        }
    }
}

/// A row that is referred to, as `t<alias>`, beside `t<around>`.
pub(super) struct Join<'q> {
    pub(super) around: u64,
    pub(super) alias: u64,
    pub(super) entity_around: Option<&'q Entity>,
    pub(super) one: &'q ToOne,
}

/// The lists that are to be compiled yet. A level has the number of its list.
#[derive(Default)]
pub(super) struct Lists<'q> {
    pending: VecDeque<PendingList<'q>>,
    n: usize,
    /// The level that is compiled.
    now: Option<usize>,
}

struct PendingList<'q> {
    hops: Vec<Hop<'q>>,
    around: Option<usize>,
    key_around: Vec<usize>,
}

impl<'q> Lists<'q> {
    /// Notes a list in the rows that `hops` and `ones` lead to, and gives it a number.
    pub(super) fn push(
        &mut self,
        hops: &[Hop<'q>],
        ones: &[&'q ToOne],
        many: &'q ToMany,
        key_around: Vec<usize>,
    ) -> usize {
        let hops = [hops, &[Hop { ones: ones.to_vec(), many }]].concat();
        self.pending.push_back(PendingList { hops, around: self.now, key_around });
        self.n += 1;
        self.n - 1
    }

    /// All levels below `root`, each behind the one around it.
    pub(super) fn compiled(mut self, root: &'q Query) -> Vec<CompiledLevel> {
        let mut levels = Vec::new();
        while let Some(PendingList { hops, around, key_around }) = self.pending.pop_front() {
            self.now = Some(levels.len());
            let Some(Hop { many, .. }) = hops.last() else { continue };
            let mut sql = Sql::new();
            let mut select = select::write(&mut sql, &many.query, &hops, &mut self);
            let columns = &mut select.shape.columns;
            let entity = entity_around(root, &hops);
            let mut key = Vec::with_capacity(many.link.len());
            for (around, _) in &many.link {
                sql.lit(", p.").ident(&entity.fields[*around].column);
                key.push(columns.len());
                columns.push(Column { label: None, encoding: encoding::of(&entity.fields[*around].ty) });
            }
            from(&mut sql, root, &hops, &select.joins, true);
            order(&mut sql, &many.query);
            levels.push(CompiledLevel {
                sql,
                shape: Arc::new(select.shape),
                entity: Arc::clone(&many.query.entity),
                members: select.members,
                take: many.query.take,
                around,
                key_around,
                key,
            });
        }
        levels
    }
}

/// The entity that the last link begins at.
fn entity_around<'q>(root: &'q Query, hops: &'q [Hop<'_>]) -> &'q Entity {
    let Some((Hop { ones, .. }, before)) = hops.split_last() else { return &root.entity };
    match (ones.last(), before.last()) {
        (Some(one), _) => &one.entity,
        (None, Some(hop)) => &hop.many.query.entity,
        (None, None) => &root.entity,
    }
}

/// The rows that `hops` lead to, with what is joined to each. `counts`: and beside them how many there are in all.
fn from(sql: &mut Sql, root: &Query, hops: &[Hop<'_>], joins: &[Join<'_>], counts: bool) {
    let Some((hop, before)) = hops.split_last() else {
        return rows(sql, root, root.after.as_ref(), joins, None);
    };
    let query = &hop.many.query;
    let around = Some(Around { entity: entity_around(root, hops), link: &hop.many.link });
    sql.lit(" from (");
    keys(sql, root, before, hop);
    sql.lit(") p cross join lateral (");
    if counts && query.count {
        number_of_rows(sql, query, around);
        sql.lit(") c (n) cross join lateral (");
    }
    match &query.group {
        Some(_) => {
            let mut word = "select ";
            for (n, selected) in query.select.iter().enumerate() {
                sql.lit(word);
                match selected {
                    Selected::Field(field) => column(sql, &query.entity, *field),
                    Selected::Aggregate(it) => {
                        aggregate::write(sql, &query.entity, it);
                        aggregate::name(sql.lit(" as "), n);
                    }
                    Selected::One(_) | Selected::Many(_) => continue,
                }
                word = ", ";
            }
        }
        None => {
            let mut fields = BTreeSet::new();
            query.read_fields(&mut |field| {
                fields.insert(field);
            });
            for (i, field) in fields.into_iter().enumerate() {
                sql.lit(if i == 0 { "select " } else { ", " });
                column(sql, &query.entity, field);
            }
        }
    }
    rows(sql, query, query.after.as_ref(), &[], around);
    order(sql, query);
    limit(sql, query);
    sql.lit(") t");
    join(sql, &query.entity, joins);
}

/// By what the rows of a list belong to those around: each once, so that no row comes twice.
fn keys(sql: &mut Sql, root: &Query, before: &[Hop<'_>], hop: &Hop<'_>) {
    let around = before.last().map_or(root, |hop| &hop.many.query);
    let entity = hop.ones.last().map_or(&*around.entity, |one| &*one.entity);
    let is_in_link = |field: &usize| hop.many.link.iter().any(|(around, _)| around == field);
    let is_unique = hop.ones.is_empty() && entity.key_is_unique && entity.key.iter().all(is_in_link);
    let mut alias = 0;
    let mut joins = Vec::with_capacity(hop.ones.len());
    for one in &hop.ones {
        let entity_around = joins.last().map(|join: &Join<'_>| &*join.one.entity);
        joins.push(Join { around: alias, alias: alias + 1, entity_around, one });
        alias += 1;
    }
    if !is_unique {
        for (i, (field, _)) in hop.many.link.iter().enumerate() {
            sql.lit(if i == 0 { "select distinct t." } else { ", t." }).ident(&entity.fields[*field].column);
        }
        sql.lit(" from (");
    }
    for (i, (field, _)) in hop.many.link.iter().enumerate() {
        sql.lit(if i == 0 { "select " } else { ", " });
        column_of(sql, alias, entity, *field);
    }
    from(sql, root, before, &joins, false);
    if before.is_empty() {
        order(sql, root);
        limit(sql, root);
    }
    sql.lit(if is_unique { "" } else { ") t" });
}

/// Writes the rows that are referred to, behind `t`, which are rows of `entity`. One that reads hide is none.
pub(super) fn join(sql: &mut Sql, entity: &Entity, joins: &[Join<'_>]) {
    for Join { around, alias, entity_around, one } in joins {
        let inside = &*one.entity;
        sql.lit(" left join ").ident(&inside.schema).lit(".").ident(&inside.object).lit(" t").number(*alias);
        for (i, (left, right)) in one.link.iter().enumerate() {
            sql.lit(if i == 0 { " on " } else { " and " });
            column_of(sql, *alias, inside, *right);
            operator(sql, Some(&inside.fields[*right].ty), "=");
            column_of(sql, *around, entity_around.unwrap_or(entity), *left);
        }
        if let Some(flag) = inside.hidden_by() {
            sql.lit(" and ");
            column_of(sql, *alias, inside, flag);
            sql.lit(" is not true");
        }
    }
}
