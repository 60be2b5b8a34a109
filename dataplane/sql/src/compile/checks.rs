//! What PostgreSQL judges of a key field's values in the statement that would write the row.

use super::operator;
use super::write::FIRST_UNTRUE;
use crate::catalog::Entity;
use crate::query::{Check, Upsert};
use crate::shape::Shape;
use crate::text::Sql;

/// All of them, after `word`; nothing where there are none.
pub(super) fn and(sql: &mut Sql, upsert: &Upsert, word: &'static str) {
    for (i, check) in upsert.checks.iter().enumerate() {
        sql.lit(if i == 0 { word } else { " and " });
        write(sql, &upsert.entity, check);
    }
}

/// A row that says which one is not true first.
pub(super) fn which(sql: &mut Sql, upsert: &Upsert, shape: &Shape) {
    if upsert.checks.is_empty() {
        return;
    }
    for i in 0..shape.columns.len() {
        sql.lit(if i == 0 { " union all select " } else { ", " });
        if shape.count != Some(i) {
            sql.lit("null");
            continue;
        }
        sql.lit("(case");
        for (code, check) in (FIRST_UNTRUE..).zip(&upsert.checks) {
            sql.lit(" when ");
            write(sql, &upsert.entity, check);
            sql.lit(" is not true then ").number(code);
        }
        sql.lit(" end)::pg_catalog.int8");
    }
    sql.lit(" where (");
    and(sql, upsert, "");
    sql.lit(") is not true");
}

fn write(sql: &mut Sql, entity: &Entity, check: &Check) {
    let (Check::Kept { field, path } | Check::Same { field, path, .. }) = check;
    let field = &entity.fields[*field];
    sql.lit("(").bind(path.clone());
    operator(sql, Some(&field.ty), "=");
    match (check, &field.rounds_to) {
        (Check::Same { body, .. }, _) => sql.bind(body.clone()),
        (Check::Kept { .. }, Some(ty)) => sql.bind(path.clone()).lit("::").built_in(ty),
        (Check::Kept { .. }, None) => sql.bind(path.clone()),
    };
    sql.lit(")");
}
