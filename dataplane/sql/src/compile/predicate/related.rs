//! Conditions on rows of other entities: `exists`, which PostgreSQL makes a join of, so that an index over either end serves.

use std::collections::BTreeSet;

use super::super::nested::Around;
use super::super::{column_of, fence};
use super::{Row, write_of};
use crate::catalog::EntityKind;
use crate::query::{Related, RelatedForm};
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
            let is_fenced = entity.kind == EntityKind::View && fence::raises(entity, inner);
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
    if is_fenced {
        let mut fields = BTreeSet::new();
        if let Some(inner) = &related.inner {
            inner.fields(&mut |field| {
                fields.insert(field);
            });
        }
        let mut word = "(select ";
        for field in &fields {
            column_of(sql.lit(word), alias, entity, *field);
            word = ", ";
        }
        sql.lit(if fields.is_empty() { "(select from " } else { " from " });
    }
    sql.ident(&entity.schema).lit(".").ident(&entity.object).lit(" t").number(alias).lit(" where ");
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
