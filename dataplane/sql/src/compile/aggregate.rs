//! What groups of rows come to.

use super::{column, predicate};
use crate::catalog::Entity;
use crate::query::{Aggregate, AggregateFunction, Group, Selected};
use crate::text::Sql;

/// Writes one aggregate over rows `t`.
pub(super) fn write(sql: &mut Sql, entity: &Entity, aggregate: &Aggregate) {
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

/// Calls `each` with every aggregate that is selected, and its number among them.
pub(super) fn each<'q>(select: &'q [Selected], each: &mut impl FnMut(usize, &'q Aggregate)) {
    fn walk<'q>(select: &'q [Selected], n: &mut usize, each: &mut impl FnMut(usize, &'q Aggregate)) {
        for selected in select {
            match selected {
                Selected::Aggregate(it) => {
                    each(*n, it);
                    *n += 1;
                }
                Selected::Object { select, .. } => walk(select, n, each),
                _ => {}
            }
        }
    }
    walk(select, &mut 0, each);
}

/// Writes the name of the `n`-th aggregate in a statement that works it out below.
pub(super) fn name(sql: &mut Sql, n: usize) {
    sql.lit("a").number(n as u64);
}

/// Writes what makes groups of the rows before, and which of them are kept.
pub(super) fn group(sql: &mut Sql, entity: &Entity, group: &Group) {
    for (i, key) in group.keys.iter().enumerate() {
        sql.lit(if i == 0 { " group by " } else { ", " });
        column(sql, entity, *key);
    }
    for (i, having) in group.having.iter().enumerate() {
        sql.lit(if i == 0 { " having " } else { " and " });
        write(sql, entity, &having.aggregate);
        sql.lit(" ").lit(predicate::symbol(having.op)).lit(" ").bind(having.value.clone());
    }
}
