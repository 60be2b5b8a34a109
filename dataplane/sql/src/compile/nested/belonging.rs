//! To which rows the rows of a list belong.

use super::with_around::{self, KeysAround};
use super::{Hop, ListPlan, keys};
use crate::catalog::{Entity, Link};
use crate::compile::predicate::Row;
use crate::compile::{column, column_of, operator};
use crate::query::Query;
use crate::text::Sql;

/// The rows to which the rows asked for belong.
#[derive(Clone, Copy)]
pub(in crate::compile) enum Belonging<'a> {
    To(Around<'a>),
    /// Any of those that `hop` begins at.
    ToAny {
        root: &'a Query,
        before: &'a [Hop<'a>],
        hop: &'a Hop<'a>,
        /// Positions of fields that are equal, of the entity around and of the entity inside.
        pairs: &'a [(usize, usize)],
        /// Where these are found already, in the same statement.
        found: Option<KeysAround<'a>>,
    },
}

impl Belonging<'_> {
    /// The fields by which they are looked for.
    pub(in crate::compile) fn inside(self) -> Vec<usize> {
        match self {
            Belonging::To(around) => around.link.inside(),
            Belonging::ToAny { pairs, .. } => pairs.iter().map(|(_, at)| *at).collect(),
        }
    }

    /// Writes that a row of `inside` belongs to them.
    pub(in crate::compile) fn condition(self, sql: &mut Sql, inside: &Entity) {
        match self {
            Belonging::To(around) => around.belongs(sql, Row { entity: inside, alias: 0 }),
            Belonging::ToAny { root, before, hop, pairs, found } => {
                let (open, word, close) = match pairs.len() {
                    // PostgreSQL reads an index with an array in the order of its pages
                    1 => ("", " = any(array(", "))"),
                    _ => ("(", ") in (", ")"),
                };
                sql.lit(open);
                for (i, (_, at)) in pairs.iter().enumerate() {
                    column(sql.lit(if i == 0 { "" } else { ", " }), inside, *at);
                }
                sql.lit(word);
                match found {
                    Some(keys) => with_around::select_keys(sql, keys),
                    None => keys(sql, root, before, hop, (ListPlan::Together, false)),
                }
                sql.lit(close);
            }
        }
    }
}

/// Rows of this entity, around those that the link finds.
#[derive(Clone, Copy)]
pub(in crate::compile) struct Around<'a> {
    pub(in crate::compile) entity: &'a Entity,
    pub(in crate::compile) link: &'a Link,
    /// They are `t<alias>`; `None`: `p`.
    pub(in crate::compile) alias: Option<u64>,
}

impl Around<'_> {
    fn column(self, sql: &mut Sql, field: usize) {
        match self.alias {
            None => {
                sql.lit("p.").ident(&self.entity.fields[field].column);
            }
            Some(alias) => column_of(sql, alias, self.entity, field),
        }
    }

    /// Writes that a row of `inside` belongs to the row around.
    pub(in crate::compile) fn belongs(self, sql: &mut Sql, inside: Row<'_>) {
        let Row { entity, alias } = inside;
        match self.link {
            Link::All => {
                sql.lit("true");
            }
            Link::Fields(pairs) => {
                for (i, (around, at)) in pairs.iter().enumerate() {
                    sql.lit(if i == 0 { "" } else { " and " });
                    column_of(sql, alias, entity, *at);
                    operator(sql, Some(&entity.fields[*at].ty), "=");
                    self.column(sql, *around);
                }
            }
            // a row comes once, however many rows between lead to it
            Link::Through(through) => {
                sql.lit("exists (select from ")
                    .ident(&through.schema)
                    .lit(".")
                    .ident(&through.object)
                    .lit(" j");
                for (i, (around, between)) in through.around.iter().enumerate() {
                    sql.lit(if i == 0 { " where j." } else { " and j." }).ident(between);
                    operator(sql, Some(&self.entity.fields[*around].ty), "=");
                    self.column(sql, *around);
                }
                for (between, at) in &through.inside {
                    sql.lit(" and j.").ident(between);
                    operator(sql, Some(&entity.fields[*at].ty), "=");
                    column_of(sql, alias, entity, *at);
                }
                sql.lit(")");
            }
        }
    }
}
