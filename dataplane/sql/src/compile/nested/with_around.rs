//! A list whose rows come in the statement of the rows around them: these are found once, in a `with`, which costs PostgreSQL less than to
//! find them once more in a statement of the list's own.

use std::sync::Arc;

use super::{CompiledLevel, Hop, in_memory, rows_up_to};
use crate::query::{Query, Selected};
use crate::shape::{Column, Encoding, Shape};
use crate::text::Sql;

/// PostgreSQL keeps the rows around in memory, as far as they fit into `work_mem`. One more is asked for than a page has.
const MAX_ROWS: u64 = 1001;
/// A row of the list has NULL in each column of a row around that shares no place with its own: many of these cost more than the rows
/// around do a second time.
const MAX_COLUMNS: usize = 64;

/// A statement that gives the rows of a list, in no order, and then the rows around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListWithin {
    /// The number of the list's level.
    pub level: usize,
    /// The columns of a row of the list come first.
    pub shape: Arc<Shape>,
    /// The first column of the list's key, which is NULL in a row around.
    pub key: usize,
    /// Where the columns of a row around stand.
    pub columns_around: Vec<usize>,
}

/// Whether the rows that `hops` lead to, asked for together by `pairs`, may come in the statement of `around`, the rows of `root`.
pub(super) fn fits(
    root: &Query,
    hops: &[Hop<'_>],
    pairs: Option<&[(usize, usize)]>,
    around: &CompiledLevel,
) -> bool {
    let ([hop], Some(pairs)) = (hops, pairs) else { return false };
    around.is_first()
        && !around.is_value
        && around.list_within.is_none()
        && root.group.is_none()
        && rows_up_to(root) <= MAX_ROWS
        && around.shape.columns.len() + n_columns(&hop.query.select) + hop.query.order.len() < MAX_COLUMNS
        && in_memory::is_possible(hop.query, pairs)
}

/// About as many columns as these members have.
fn n_columns(select: &[Selected]) -> usize {
    let of = |selected: &Selected| match selected {
        Selected::Field(_) | Selected::Alias { .. } | Selected::Aggregate { .. } => 1,
        Selected::Constant { .. } => 0,
        Selected::Object { select, .. } => n_columns(select),
        Selected::One(one) => n_columns(&one.select) + 2 * one.link.len(),
        Selected::Many(many) => many.link.around().len(),
    };
    select.iter().map(of).sum()
}

/// Writes the beginning of a statement that finds the rows `around`, and then those of the list that is written next.
pub(super) fn begin(around: &Sql) -> Sql {
    let mut sql = Sql::new();
    sql.lit("with p as materialized (").begin_with(around).lit(") (");
    sql
}

/// The columns of the rows around by which those of the list belong to them.
#[derive(Debug, Clone, Copy)]
pub(in crate::compile) struct KeysAround<'a> {
    pub(super) columns: &'a [usize],
    /// Of all columns, each of which is named, so that no other one is called `c0`.
    pub(super) n_columns: usize,
}

/// Writes a SELECT of these columns of the rows around.
pub(super) fn select_keys(sql: &mut Sql, keys: KeysAround<'_>) {
    for (i, column) in keys.columns.iter().enumerate() {
        sql.lit(if i == 0 { "select c" } else { ", c" }).number(*column as u64);
    }
    rows(sql, "p", keys.n_columns);
}

impl ListWithin {
    /// Writes what a row of the list has beside its columns, behind these: NULL for each column around that has no place among them. The
    /// list is the level `level`, and its column `key` is never NULL: it equals one of a row around.
    pub(super) fn begin(
        sql: &mut Sql,
        level: usize,
        (list, key): (&[Column], usize),
        around: &Shape,
    ) -> ListWithin {
        let mut columns: Vec<Column> = list.iter().map(unlabelled).collect();
        let mut columns_around: Vec<usize> = Vec::with_capacity(around.columns.len());
        for column in &around.columns {
            let has_place = |at: &usize| {
                *at != key
                    && list[*at].encoding == column.encoding
                    && is_one_type(&column.encoding)
                    && !columns_around.contains(at)
            };
            let found = (0..list.len()).find(has_place);
            columns_around.push(found.unwrap_or(columns.len()));
            if found.is_none() {
                sql.lit(", null");
                columns.push(unlabelled(column));
            }
        }
        let shape = Arc::new(Shape { columns, position: Vec::new(), count: None });
        ListWithin { level, shape, key, columns_around }
    }

    /// Writes the end of the statement, behind the list; NULL has the type of what the rows of the list have there.
    pub(super) fn end(&self, sql: &mut Sql) {
        sql.lit(") union all");
        for place in 0..self.shape.columns.len() {
            sql.lit(if place == 0 { " select " } else { ", " });
            match self.columns_around.iter().position(|at| *at == place) {
                Some(column) => sql.lit("c").number(column as u64),
                None => sql.lit("null"),
            };
        }
        rows(sql, "p", self.columns_around.len());
    }
}

fn unlabelled(column: &Column) -> Column {
    Column { label: None, encoding: column.encoding.clone() }
}

/// Whether all values that are written so are of one type, below domains, so that they stand in one column.
fn is_one_type(encoding: &Encoding) -> bool {
    matches!(
        encoding,
        Encoding::Bool
            | Encoding::Int2
            | Encoding::Int4
            | Encoding::Int8
            | Encoding::Float4
            | Encoding::Float8
            | Encoding::Numeric
            | Encoding::Uuid
            | Encoding::Date
            | Encoding::Timestamp
            | Encoding::TimestampTz
    )
}

/// Writes where the `n` columns, `c0` and so on, are from.
fn rows(sql: &mut Sql, name: &'static str, n: usize) {
    sql.lit(" from ").lit(name).lit(" as r (");
    for column in 0..n {
        sql.lit(if column == 0 { "c" } else { ", c" }).number(column as u64);
    }
    sql.lit(")");
}
