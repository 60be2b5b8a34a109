//! A [`Query`] becomes SQL text, binds, and the [`Shape`] of its result. Equal shapes give equal text, whatever the
//! values, so that the text can be the text of a prepared statement.

mod aggregate;
mod all_rows;
mod call;
mod checks;
pub(crate) mod encoding;
mod fence;
pub mod image;
mod nested;
mod page;
mod predicate;
mod select;
mod value;
mod write;

use std::collections::BTreeSet;
use std::sync::Arc;

use rowgate_core::cursor::{Binding, Position};

use crate::catalog::{Entity, FieldType, Link, Operators};
use crate::query::{Document, DocumentMember, Form, OrderTerm, Predicate, Query, ToMany};
use crate::shape::{Column, Encoding, Shape, label};
use crate::text::Sql;
pub use all_rows::{CompiledRows, all_rows};
pub use call::{CompiledCall, call};
use nested::{Belonging, Join, Lists};
pub use nested::{CompiledLevel, ListPlan, ListWithin, OrderColumn};
pub use select::Member;
pub use value::probe::{ValueDiagnosis, ValueProbe};
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
    /// Empty where the labelled columns of the shape are an object's members.
    pub members: Vec<Member>,
    /// The statements of lists in its rows, for the same batch and snapshot; each behind the one around it.
    pub levels: Vec<CompiledLevel>,
}

/// One statement. Columns are listed, never `*`: a column that comes later is nobody's before it is granted.
#[must_use]
pub fn read(query: &Query) -> CompiledRead {
    let mut sql = Sql::new();
    let mut lists = Lists::below(query);
    let select = select::write(&mut sql, query, &[], &mut lists);
    rows(&mut sql, query, query.after.as_ref(), &select.joins, None);
    order(&mut sql, query);
    limit(&mut sql, query);
    CompiledRead {
        sql,
        shape: Arc::new(select.shape),
        entity: Arc::clone(&query.entity),
        take: query.take,
        is_first_page: query.after.is_none(),
        binding: query.binding,
        is_tagged: query.version.is_some(),
        members: select.members,
        levels: lists.compiled(),
    }
}

/// A read with rows within its rows, as a document of its own. A second read counts, where that was asked.
#[must_use]
pub fn rows_within(mut query: Query) -> Document {
    let is_counted = std::mem::take(&mut query.count);
    let mut lists = vec![query];
    if is_counted {
        lists.push(lists[0].number_of_rows());
    }
    let many = ToMany { link: Link::All, lists, form: Form::Array { name: "value".to_owned() } };
    Document { members: vec![DocumentMember::Read(Box::new(many))] }
}

/// Several reads whose rows make one object.
#[derive(Debug, Clone)]
pub struct CompiledDocument {
    /// In their order; their numbers are those of `levels`.
    pub members: Vec<Member>,
    /// With their statements, for one batch and one snapshot; each behind the one around it.
    pub levels: Vec<CompiledLevel>,
    /// Oids of all relations that are read, each once.
    pub relations: Vec<u32>,
}

/// The statements of all reads of a document.
#[must_use]
pub fn document(document: &Document, plan: ListPlan) -> CompiledDocument {
    let mut lists = Lists::of(plan);
    let mut members = Vec::with_capacity(document.members.len());
    for member in &document.members {
        members.push(match member {
            DocumentMember::Constant { name, json } => Member::constant(name, json),
            DocumentMember::Read(many) => {
                let first = lists.next_number();
                for query in &many.lists {
                    lists.push_read(query);
                }
                Member::of(many, first)
            }
        });
    }
    let mut relations = BTreeSet::new();
    for member in &document.members {
        if let DocumentMember::Read(many) = member {
            many.relations(&mut relations);
        }
    }
    let relations = relations.into_iter().collect();
    CompiledDocument { members, levels: lists.compiled(), relations }
}

fn order(sql: &mut Sql, query: &Query) {
    for (i, term) in query.order.iter().enumerate() {
        sql.lit(if i == 0 { " order by " } else { ", " });
        ordered(sql, query, term);
        if term.descending {
            sql.lit(" desc");
        }
    }
}

/// The field of a term of the order. A reference is joined as the row of the number that follows its own.
fn ordered(sql: &mut Sql, query: &Query, term: &OrderTerm) {
    column_of(sql, alias_of(term), query.ordered(term), term.field);
}

fn alias_of(term: &OrderTerm) -> u64 {
    term.reference.map_or(0, |number| number as u64 + 1)
}

fn limit(sql: &mut Sql, query: &Query) {
    sql.lit(" limit ").number(rows_up_to(query));
}

/// The limit that stands in its statement.
fn rows_up_to(query: &Query) -> u64 {
    match query.order.is_empty() {
        true => query.take as u64,
        false => page::limit(query.take as u64, query.max_take as u64),
    }
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
        members: Vec::new(),
        levels: Vec::new(),
    }
}

/// How many rows there are, or groups of them.
fn number_of_rows(sql: &mut Sql, query: &Query) {
    sql.lit("select pg_catalog.count(*)");
    rows(sql, query, None, &[], None);
}

/// What a question is about, behind a position if there is one: rows, with `joins` beside them, or groups of rows. With `around`
/// only rows that belong to a row `p`.
fn rows(
    sql: &mut Sql,
    query: &Query,
    after: Option<&Position>,
    joins: &[Join<'_>],
    around: Option<Belonging<'_>>,
) {
    let Some(group) = &query.group else { return single_rows(sql, query, after, joins, around) };
    sql.lit(" from (");
    aggregate::select(sql, &query.entity, group);
    single_rows(sql, query, None, &[], around);
    aggregate::by(sql, &query.entity, group);
    sql.lit(") t");
    let mut word = " where ";
    if let Some(having) = &group.having {
        let n_binds = sql.binds().len();
        predicate::write(sql.lit(word), &group.entity, having, after.is_some());
        sql.beside_no_field(n_binds);
        word = " and ";
    }
    if let Some(position) = after {
        page::after(sql.lit(word), query, position);
    }
}

/// Rows by themselves. Every read of an entity goes through here, so that rows that are flagged as deleted are in none where the
/// entity hides them. Writes reach them, and give them back.
fn single_rows(
    sql: &mut Sql,
    query: &Query,
    after: Option<&Position>,
    joins: &[Join<'_>],
    around: Option<Belonging<'_>>,
) {
    let entity = &*query.entity;
    match fence::of(query) {
        None => source(sql, query, query.filter.as_ref(), after, joins, around),
        Some(fence) => {
            sql.lit(if fence.fields.is_empty() { " from (select" } else { " from (" });
            let mut word = "select ";
            for field in fence.fields {
                column(sql.lit(word), entity, field);
                word = ", ";
            }
            let (after_inside, after_outside) = if fence.sorts { (None, after) } else { (after, None) };
            // the position may be one of rows that are joined
            let within = if after_inside.is_some() { nested::of_order(query) } else { Vec::new() };
            source(sql, query, fence.inside.as_ref(), after_inside, &within, around);
            // PostgreSQL moves no condition below an OFFSET.
            sql.lit(" offset 0) t");
            nested::join(sql, entity, joins);
            let mut word = " where ";
            if let Some(outside) = &fence.outside {
                predicate::write(sql.lit(word), entity, outside, after_outside.is_some());
                word = " and ";
            }
            if let Some(position) = after_outside {
                page::after(sql.lit(word), query, position);
            }
        }
    }
}

/// The rows of the table or view that pass `filter`.
fn source(
    sql: &mut Sql,
    query: &Query,
    filter: Option<&Predicate>,
    after: Option<&Position>,
    joins: &[Join<'_>],
    around: Option<Belonging<'_>>,
) {
    let entity = &*query.entity;
    let by = around.into_iter().flat_map(Belonging::inside);
    fence::relation(sql.lit(" from "), entity, 0, by, |fields| {
        let mut add = |field| {
            fields.insert(field);
        };
        query.read_fields(&mut add);
        query.filter.iter().for_each(|filter| filter.fields(&mut add));
    });
    nested::join(sql, entity, joins);
    let mut word = " where ";
    if let Some(around) = around {
        around.condition(sql.lit(word), entity);
        word = " and ";
    }
    if let Some(flag) = entity.hidden_by() {
        sql.lit(word);
        column(sql, entity, flag);
        sql.lit(" is not true");
        word = " and ";
    }
    if let Some(filter) = filter {
        sql.lit(word);
        predicate::write(sql, entity, filter, after.is_some() || word == " and ");
        word = " and ";
    }
    if let Some(position) = after {
        sql.lit(word);
        page::after(sql, query, position);
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

/// Of the rows `t<alias>`; 0: those that the statement is about.
fn column_of(sql: &mut Sql, alias: u64, entity: &Entity, field: usize) {
    if alias == 0 {
        return column(sql, entity, field);
    }
    sql.lit("t").number(alias).lit(".").ident(&entity.fields[field].column);
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
