//! A [`Query`] becomes SQL text, binds, and the [`Shape`] of its result. Equal shapes give equal text, whatever the
//! values, so that the text can be the text of a prepared statement.

mod call;
mod checks;
mod encoding;
mod fence;
mod page;
mod predicate;
mod value;
mod value_probe;
mod write;

use std::sync::Arc;

use rowgate_core::cursor::{Binding, Position};

use crate::catalog::{Entity, FieldType, Operators};
use crate::query::{Predicate, Query};
use crate::shape::{Column, Encoding, Shape, label};
use crate::text::Sql;
pub use call::{CompiledCall, call};
pub use value_probe::{ValueDiagnosis, ValueProbe};
pub use write::{CompiledWrite, Effect, Verb, delete, insert, upsert};

/// A read: rows, and where the next page begins.
#[derive(Debug, Clone)]
pub struct CompiledRead {
    pub sql: Sql,
    pub shape: Arc<Shape>,
    pub entity: Arc<Entity>,
    /// Rows to return; the SQL may give more, and a row beyond these says that another page exists.
    pub take: usize,
    /// No row stands before the page, so that a page without rows says that there are none at all.
    pub is_first_page: bool,
    /// For the cursor of the next page, made of the last row's position. `None` for a row that is named by its key.
    pub binding: Option<Binding>,
    /// The position of the shape is the row's version.
    pub is_tagged: bool,
}

/// One statement. Columns are listed, never `*`: a column that comes later is nobody's before it is granted.
#[must_use]
pub fn read(query: &Query) -> CompiledRead {
    let entity = &*query.entity;
    let mut sql = Sql::new();
    let shape = select(&mut sql, query);
    rows(&mut sql, query, query.after.as_ref());
    for (i, term) in query.order.iter().enumerate() {
        sql.lit(if i == 0 { " order by " } else { ", " });
        column(&mut sql, entity, term.field);
        if term.descending {
            sql.lit(" desc");
        }
    }
    sql.lit(" limit ").number(match query.order.is_empty() {
        true => query.take as u64,
        false => page::limit(query.take as u64, query.max_take as u64),
    });
    CompiledRead {
        sql,
        shape: Arc::new(shape),
        entity: Arc::clone(&query.entity),
        take: query.take,
        is_first_page: query.after.is_none(),
        binding: query.binding,
        is_tagged: query.version.is_some(),
    }
}

/// The select list: the fields asked for, then what the position needs and does not find among them.
fn select(sql: &mut Sql, query: &Query) -> Shape {
    let entity = &*query.entity;
    let mut columns = shown(sql, entity, "select ", &query.select);
    let mut position = Vec::new();
    for term in &query.order {
        let shown = query.select.iter().position(|&i| i == term.field);
        position.push(shown.unwrap_or(columns.len()));
        if shown.is_none() {
            sql.lit(", ");
            column(sql, entity, term.field);
            columns.push(Column { label: None, encoding: position_encoding(entity, term.field) });
        }
    }
    if let Some(version) = query.version {
        position.push(mark(sql, entity, &mut columns, version));
    }
    let count = query.count.then(|| {
        // Uncorrelated, so PostgreSQL works it out once and not for each row, in the snapshot of the page.
        sql.lit(", (");
        number_of_rows(sql, query);
        sql.lit(")");
        columns.push(Column { label: None, encoding: Encoding::Int8 });
        columns.len() - 1
    });
    Shape { columns, position, count }
}

/// How many rows pass the filter, for a page after others without rows: there the count of [`read`] has no row to
/// stand in.
#[must_use]
pub fn count(query: &Query) -> CompiledRead {
    let mut sql = Sql::new();
    number_of_rows(&mut sql, query);
    let columns = vec![Column { label: None, encoding: Encoding::Int8 }];
    let shape = Shape { columns, position: Vec::new(), count: Some(0) };
    CompiledRead {
        sql,
        shape: Arc::new(shape),
        entity: Arc::clone(&query.entity),
        take: 1,
        is_first_page: true,
        binding: None,
        is_tagged: false,
    }
}

fn number_of_rows(sql: &mut Sql, query: &Query) {
    sql.lit("select pg_catalog.count(*)");
    rows(sql, query, None);
}

/// The rows that a question is about, behind a position if there is one. Every read of an entity goes through here, so that
/// rows that are flagged as deleted are in none where the entity hides them. Writes reach them, and give them back.
fn rows(sql: &mut Sql, query: &Query, after: Option<&Position>) {
    let entity = &*query.entity;
    match fence::of(query) {
        None => source(sql, query, query.filter.as_ref(), after),
        Some(fence) => {
            sql.lit(" from (");
            let mut word = "select ";
            for field in fence.fields {
                column(sql.lit(word), entity, field);
                word = ", ";
            }
            source(sql, query, fence.inside.as_ref(), after);
            // PostgreSQL moves no condition below an OFFSET.
            sql.lit(" offset 0) t where ");
            predicate::write(sql, entity, &fence.outside, false);
        }
    }
}

/// The rows of the table or view that pass `filter`.
fn source(sql: &mut Sql, query: &Query, filter: Option<&Predicate>, after: Option<&Position>) {
    let entity = &*query.entity;
    sql.lit(" from ").ident(&entity.schema).lit(".").ident(&entity.object).lit(" t");
    let mut word = " where ";
    let hidden_by = entity.hidden_by();
    if let Some(flag) = hidden_by {
        sql.lit(word);
        column(sql, entity, flag);
        sql.lit(" is not true");
        word = " and ";
    }
    if let Some(filter) = filter {
        sql.lit(word);
        predicate::write(sql, entity, filter, after.is_some() || hidden_by.is_some());
        word = " and ";
    }
    if let Some(position) = after {
        sql.lit(word);
        page::after(sql, entity, &query.order, position);
    }
}

/// Fields that the answer shows, after `word`; nothing where there are none.
fn shown(sql: &mut Sql, entity: &Entity, word: &'static str, fields: &[usize]) -> Vec<Column> {
    let show = |(n, &i): (usize, &usize)| {
        sql.lit(if n == 0 { word } else { ", " });
        column(sql, entity, i);
        let field = &entity.fields[i];
        Column { label: Some(label(&field.name)), encoding: encoding::of(&field.ty) }
    };
    fields.iter().enumerate().map(show).collect()
}

/// Asks for a field beside the answer: where it stands among `columns`, one of which there is.
fn mark(sql: &mut Sql, entity: &Entity, columns: &mut Vec<Column>, field: usize) -> usize {
    sql.lit(", ");
    column(sql, entity, field);
    columns.push(Column { label: None, encoding: encoding::of(&entity.fields[field].ty) });
    columns.len() - 1
}

fn column(sql: &mut Sql, entity: &Entity, field: usize) {
    sql.lit("t.").ident(&entity.fields[field].column);
}

/// Writes `symbol` between two values of a type.
fn operator(sql: &mut Sql, ty: Option<&FieldType>, symbol: &'static str) {
    match ty.map(|ty| &ty.operators) {
        Some(Operators::In(schema)) => sql.lit(" operator(").ident(schema).lit(".").lit(symbol).lit(") "),
        _ => sql.lit(" ").lit(symbol).lit(" "),
    };
}

/// How the values of an order term come back in a position: asked for and bound in the same format.
fn position_encoding(entity: &Entity, field: usize) -> Encoding {
    encoding::of(&entity.fields[field].ty)
}
