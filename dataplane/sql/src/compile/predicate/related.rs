//! Conditions on rows of other entities: `exists`, which PostgreSQL makes a join of, so that an index over either end serves.

use std::collections::BTreeSet;

use super::super::nested::Around;
use super::super::{column_of, fence, operator};
use super::{Row, write_of};
use crate::catalog::EntityKind;
use crate::query::{Reference, Referenced, Related, RelatedForm};
use crate::text::Sql;

/// Names of rows below this stand for rows that are joined.
const FIRST_ALIAS: u64 = 100;

/// Writes that rows of `related` belong to `row`, for which its condition holds.
pub(super) fn write(sql: &mut Sql, row: Row<'_>, related: &Related) {
    let entity = &*related.entity;
    let inside = Row { entity, alias: FIRST_ALIAS.max(row.alias + 1) };
    sql.lit(if related.is_negated { "not " } else { "" });
    // without a row the condition is neither true nor false, which `not` leaves so
    let is_value = related.form == RelatedForm::Value && !related.is_negated;
    match (&related.inner, is_value) {
        (Some(inner), true) => {
            sql.lit("(select ");
            write_of(sql, inside, inner, true);
            from(sql, row, inside, related, false);
        }
        (Some(inner), false) => {
            sql.lit("exists (select");
            let is_worked_out = related.link.inside().iter().any(|field| entity.fields[*field].is_worked_out);
            // its rows are looked for behind the view anyway
            let is_fenced = entity.kind == EntityKind::View && !is_worked_out && fence::raises(entity, inner);
            from(sql, row, inside, related, is_fenced);
            sql.lit(if is_fenced { " where " } else { " and " });
            write_of(sql, inside, inner, true);
        }
        (None, _) => {
            sql.lit("exists (select");
            from(sql, row, inside, related, false);
        }
    }
    sql.lit(")");
}

/// The rows that belong to `row`. `is_fenced`: a view's own conditions are tried before any of ours.
fn from(sql: &mut Sql, row: Row<'_>, inside: Row<'_>, related: &Related, is_fenced: bool) {
    let Row { entity, alias } = inside;
    sql.lit(" from ");
    let mut fields = BTreeSet::new();
    if let Some(inner) = &related.inner {
        inner.fields(&mut |field| {
            fields.insert(field);
        });
    }
    if is_fenced {
        let mut word = "(select ";
        for field in &fields {
            column_of(sql.lit(word), alias, entity, *field);
            word = ", ";
        }
        sql.lit(if fields.is_empty() { "(select from " } else { " from " });
    }
    fence::relation(sql, entity, alias, related.link.inside(), |all| all.extend(&fields));
    sql.lit(" where ");
    let around = Around { entity: row.entity, link: &related.link, alias: Some(row.alias) };
    around.belongs(sql, inside);
    if let Some(flag) = entity.hidden_by() {
        sql.lit(" and ");
        column_of(sql, alias, entity, flag);
        sql.lit(" is not true");
    }
    if is_fenced {
        sql.lit(" offset 0) t").number(alias);
    }
}

/// Writes a field of the row that references lead to from `row`. There is at most one, which PostgreSQL need not check.
pub(in crate::compile) fn field(sql: &mut Sql, row: Row<'_>, of: &Referenced) {
    let first = FIRST_ALIAS.max(row.alias + 1);
    let inside = |at: usize| Row { entity: &of.references[at].entity, alias: first + at as u64 };
    let last = inside(of.references.len() - 1);
    sql.lit("(select ");
    column_of(sql, last.alias, last.entity, of.field);
    for at in 0..of.references.len() {
        let Row { entity, alias } = inside(at);
        sql.lit(if at == 0 { " from " } else { ", " });
        let by = of.references[at].link.iter().map(|(_, right)| *right);
        fence::relation(sql, entity, alias, by, |fields| match of.references.get(at + 1) {
            Some(next) => fields.extend(next.link.iter().map(|(left, _)| *left)),
            None => drop(fields.insert(of.field)),
        });
    }
    let mut word = " where ";
    for (at, Reference { link, .. }) in of.references.iter().enumerate() {
        let (around, inside) = (if at == 0 { row } else { inside(at - 1) }, inside(at));
        for (left, right) in link {
            column_of(sql.lit(word), inside.alias, inside.entity, *right);
            operator(sql, Some(&inside.entity.fields[*right].ty), "=");
            column_of(sql, around.alias, around.entity, *left);
            word = " and ";
        }
        if let Some(flag) = inside.entity.hidden_by() {
            column_of(sql.lit(word), inside.alias, inside.entity, flag);
            sql.lit(" is not true");
        }
    }
    sql.lit(" limit 1)");
}
