//! Groups of rows, as a table that the statement makes of them: PostgreSQL moves conditions on keys back to the rows, and makes
//! HAVING of conditions on aggregates.

use super::{column, fence};
use crate::catalog::{Entity, EntityKind};
use crate::query::{Aggregate, Group};
use crate::request::AggregateFunction;
use crate::text::Sql;

/// Writes the select list that makes groups of rows `t` of `entity`.
pub(super) fn select(sql: &mut Sql, entity: &Entity, group: &Group) {
    for (i, field) in group.entity.fields.iter().enumerate() {
        sql.lit(if i == 0 { "select " } else { ", " });
        match group.keys.get(i) {
            Some(key) => column(sql, entity, *key),
            None => write(sql, entity, &group.aggregates[i - group.keys.len()]),
        }
        sql.lit(" as ").ident(&field.column);
    }
}

fn write(sql: &mut Sql, entity: &Entity, aggregate: &Aggregate) {
    sql.lit(match aggregate.function {
        AggregateFunction::Count => "pg_catalog.count(",
        AggregateFunction::Sum => "pg_catalog.sum(",
        AggregateFunction::Avg => "pg_catalog.avg(",
        AggregateFunction::Min => "pg_catalog.min(",
        AggregateFunction::Max => "pg_catalog.max(",
    });
    match aggregate.field {
        None => {
            sql.lit("*");
        }
        Some(field) => {
            sql.lit(if aggregate.is_distinct { "distinct " } else { "" });
            column(sql, entity, field);
        }
    }
    sql.lit(")");
}

/// Writes by which fields of the rows before they are grouped.
pub(super) fn by(sql: &mut Sql, entity: &Entity, group: &Group) {
    for (i, key) in group.keys.iter().enumerate() {
        sql.lit(if i == 0 { " group by " } else { ", " });
        column(sql, entity, *key);
    }
    let having = group.having.as_ref();
    if entity.kind == EntityKind::View && having.is_some_and(|having| fence::raises(&group.entity, having)) {
        // a condition on keys would be tried before those of the view
        sql.lit(" offset 0");
    }
}

/// Writes a select list of all that groups `t` are.
pub(super) fn all(sql: &mut Sql, group: &Group) {
    for (i, field) in group.entity.fields.iter().enumerate() {
        sql.lit(if i == 0 { "select t." } else { ", t." }).ident(&field.column);
    }
}
