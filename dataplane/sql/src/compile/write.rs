//! Rows made and deleted, each in one statement, under the caller's own grants and policies.

use std::sync::Arc;

use super::{Compiled, column, encoding, predicate};
use crate::query::{Delete, Insert};
use crate::shape::{Column, Shape, label};
use crate::text::Sql;

/// All rows or none. PostgreSQL gives the rows of VALUES back in their order. Without fields to give back nothing is read:
/// a policy that hides the new row then does not matter.
#[must_use]
pub fn insert(insert: &Insert) -> Compiled {
    let entity = &*insert.entity;
    let mut sql = Sql::new();
    sql.lit("insert into ").ident(&entity.schema).lit(".").ident(&entity.object).lit(" as t ");
    // A row without a value is said by a default; which one does not matter.
    let nameless = insert.fields.is_empty() && 1 < insert.rows.len();
    let fields = if nameless { &entity.key[..1] } else { &insert.fields[..] };
    if fields.is_empty() {
        sql.lit("default values");
    } else {
        for (i, &field) in fields.iter().enumerate() {
            sql.lit(if i == 0 { "(" } else { ", " }).ident(&entity.fields[field].column);
        }
        for (i, row) in insert.rows.iter().enumerate() {
            sql.lit(if i == 0 { ") values (" } else { "), (" });
            if nameless {
                sql.lit("default");
            }
            for (j, value) in row.iter().enumerate() {
                sql.lit(if j == 0 { "" } else { ", " });
                match value {
                    Some(bind) => sql.bind(bind.clone()),
                    None => sql.lit("default"),
                };
            }
        }
        sql.lit(")");
    }
    let mut columns = Vec::new();
    for &i in &insert.returning {
        sql.lit(if columns.is_empty() { " returning " } else { ", " });
        column(&mut sql, entity, i);
        let field = &entity.fields[i];
        columns.push(Column { label: Some(label(&field.name)), encoding: encoding::of(&field.ty) });
    }
    written(sql, columns, Arc::clone(&insert.entity))
}

/// Reaches only what the caller's policies for reading show: the condition reads the key.
#[must_use]
pub fn delete(delete: &Delete) -> Compiled {
    let entity = &*delete.entity;
    let mut sql = Sql::new();
    sql.lit("delete from ").ident(&entity.schema).lit(".").ident(&entity.object).lit(" t where ");
    predicate::write(&mut sql, entity, &delete.key, false);
    written(sql, Vec::new(), Arc::clone(&delete.entity))
}

fn written(sql: Sql, columns: Vec<Column>, entity: Arc<crate::catalog::Entity>) -> Compiled {
    let shape = Shape { columns, position: Vec::new(), count: None };
    Compiled { sql, shape: Arc::new(shape), take: usize::MAX, is_first_page: true, entity, binding: None }
}
