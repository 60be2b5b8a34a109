//! Rows that others refer to, joined beside these.

use std::collections::BTreeSet;

use crate::catalog::Entity;
use crate::compile::{column_of, fence, operator};
use crate::query::{Query, Reference};
use crate::text::Sql;

/// A row that is referred to, as `t<alias>`, beside `t<around>`.
pub(in crate::compile) struct Join<'q> {
    pub(in crate::compile) around: u64,
    pub(in crate::compile) alias: u64,
    /// `None`: the entity that the statement is about.
    pub(in crate::compile) entity_around: Option<&'q Entity>,
    /// Positions of fields that are equal, of the entity around and of this one.
    pub(in crate::compile) link: &'q [(usize, usize)],
    pub(in crate::compile) entity: &'q Entity,
    /// The fields that are read of it.
    pub(in crate::compile) read: Vec<usize>,
}

/// The rows by whose fields a read is ordered: the first of all that are joined.
pub(in crate::compile) fn of_order(query: &Query) -> Vec<Join<'_>> {
    let references = &query.order_references;
    let mut joins = Vec::with_capacity(references.len());
    for (n, Reference { from, link, entity }) in references.iter().enumerate() {
        let terms = query.order.iter().filter(|term| term.reference == Some(n)).map(|term| term.field);
        let next = references.iter().filter(|it| it.from == Some(n)).flat_map(|it| &it.link);
        joins.push(Join {
            read: terms.chain(next.map(|(left, _)| *left)).collect(),
            around: from.map_or(0, |from| from as u64 + 1),
            alias: joins.len() as u64 + 1,
            entity_around: from.map(|from| &*references[from].entity),
            link,
            entity,
        });
    }
    joins
}

/// Writes the rows that are referred to, behind `t`, which are rows of `entity`. One that reads hide is none.
pub(in crate::compile) fn join(sql: &mut Sql, entity: &Entity, joins: &[Join<'_>]) {
    for Join { around, alias, entity_around, link, entity: inside, read } in joins {
        let by = link.iter().map(|(_, right)| *right);
        let fields: BTreeSet<usize> =
            read.iter().copied().chain(by.clone()).chain(inside.hidden_by()).collect();
        // PostgreSQL works out what is more than NULL of no row before it joins
        let is_fenced = fields.iter().any(|field| inside.fields[*field].is_worked_out);
        sql.lit(" left join ");
        for (i, field) in fields.iter().enumerate().filter(|_| is_fenced) {
            column_of(sql.lit(if i == 0 { "lateral (select " } else { ", " }), *alias, inside, *field);
        }
        sql.lit(if is_fenced { " from " } else { "" });
        fence::relation(sql, inside, *alias, by, |all| all.extend(&fields));
        for (i, (left, right)) in link.iter().enumerate() {
            sql.lit(match i {
                0 if is_fenced => " where ",
                0 => " on ",
                _ => " and ",
            });
            column_of(sql, *alias, inside, *right);
            operator(sql, Some(&inside.fields[*right].ty), "=");
            column_of(sql, *around, entity_around.unwrap_or(entity), *left);
        }
        if let Some(flag) = inside.hidden_by() {
            sql.lit(" and ");
            column_of(sql, *alias, inside, flag);
            sql.lit(" is not true");
        }
        if is_fenced {
            sql.lit(" offset 0) t").number(*alias).lit(" on true");
        }
    }
}
