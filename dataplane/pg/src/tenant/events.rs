//! Captured row changes, as `dl.events` gives them to the data plane: before anybody was asked who may have them.

use sqlx::PgConnection;
use sqlx::postgres::types::Oid;

use crate::failure::PgError;

/// The newest tick, and the oldest events that are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct Tick {
    pub number: i64,
    pub generation: i32,
    /// The events of this tick and of those before it are gone.
    pub floor: i64,
}

/// All before `tick` was read, and of it the events up to `seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub tick: i64,
    pub seq: i64,
}

/// One row change.
#[derive(Debug, Clone)]
pub struct Change {
    pub at: Position,
    /// RFC 3339, in UTC.
    pub occurred_at: String,
    /// The oid of the table; of a partition that of its root.
    pub table: u32,
    /// `i`, `u`, `d` or `t`.
    pub op: String,
    /// The same in the delete and the insert that an update of the key is.
    pub cause: Option<i64>,
    /// The row as JSON; `None`: a truncate.
    pub image: Option<String>,
}

/// Changes in their order, and where the next page begins.
#[derive(Debug)]
pub struct Page {
    pub changes: Vec<Change>,
    pub next: Position,
}

/// A row of `dl.events` or of `dl.pending`.
#[derive(sqlx::FromRow)]
pub(crate) struct Row {
    tick: i64,
    seq: i64,
    occurred_at: Option<String>,
    rel: Option<i64>,
    op: Option<String>,
    cause: Option<i64>,
    image: Option<String>,
}

/// Makes a tick if anything has become visible, and gives the newest.
pub async fn tick(conn: &mut PgConnection) -> Result<Tick, PgError> {
    let tick = sqlx::query_as("select number, generation, floor from dl.tick()");
    Ok(tick.fetch_one(conn).await?)
}

/// The changes behind `after` of these tables and of these ops: at most `max`.
pub async fn page(
    conn: &mut PgConnection,
    after: Position,
    tables: &[u32],
    ops: &[String],
    max: i32,
) -> Result<Page, PgError> {
    let tables: Vec<Oid> = tables.iter().map(|oid| Oid(*oid)).collect();
    let rows: Vec<Row> = sqlx::query_as(
        "select tick, seq, to_char(at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') as occurred_at, \
                rel::int8 as rel, op::text as op, cause, image from dl.events($1, $2, $3, $4, $5)",
    )
    .bind(after.tick)
    .bind(after.seq)
    .bind(tables)
    .bind(ops)
    .bind(max)
    .fetch_all(conn)
    .await?;
    Ok(paged(rows.into_iter(), after, max))
}

/// A page of at most `max` changes behind `after`.
pub(crate) fn paged(rows: impl ExactSizeIterator<Item = Row>, after: Position, max: i32) -> Page {
    let mut page = Page { changes: Vec::with_capacity(rows.len()), next: after };
    for row in rows {
        let at = Position { tick: row.tick, seq: row.seq };
        let Row { occurred_at: Some(occurred_at), rel: Some(rel), op: Some(op), cause, image, .. } = row
        else {
            // the last one; a full page goes on behind its last change
            if i32::try_from(page.changes.len()).is_ok_and(|n| n < max) {
                page.next = at;
            }
            continue;
        };
        page.next = at;
        let table = u32::try_from(rel).unwrap_or_default();
        page.changes.push(Change { at, occurred_at, table, op, cause, image });
    }
    page
}

/// Empties the days that are over; as the owner. It looks at one row where there is none.
pub async fn retire(conn: &mut PgConnection) -> Result<(), PgError> {
    sqlx::query("select dl.retire()").execute(conn).await?;
    Ok(())
}
