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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub tick: i64,
    pub seq: i64,
}

/// One row change.
#[derive(Debug, Clone)]
pub struct Change {
    pub at: Position,
    /// Of its tick, for good.
    pub generation: i32,
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
    /// Of `next`.
    pub generation: i32,
}

/// A row of `dl.events` or of `dl.pending`.
#[derive(sqlx::FromRow)]
pub(crate) struct Row {
    tick: i64,
    seq: i64,
    generation: i32,
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

/// Whether a reader that was given this position under this generation goes on exactly there.
pub async fn holds(conn: &mut PgConnection, generation: i32, at: Position) -> Result<bool, PgError> {
    let holds = sqlx::query_scalar("select dl.holds($1, $2, $3)");
    Ok(holds.bind(generation).bind(at.tick).bind(at.seq).fetch_one(conn).await?)
}

/// Where all that is kept begins, and the generation of that position.
pub async fn start(conn: &mut PgConnection, tick: Tick) -> Result<(i32, Position), PgError> {
    let generation = sqlx::query_scalar("select dl.generation_of($1)");
    let generation = generation.bind(tick.floor).fetch_one(conn).await?;
    Ok((generation, Position { tick: tick.floor + 1, seq: 0 }))
}

/// The changes behind `after` of these tables and of these ops: at most `max`. `None`: the log gave up some of them meanwhile.
pub async fn page(
    conn: &mut PgConnection,
    after: Position,
    tables: &[u32],
    ops: &[String],
    max: i32,
) -> Result<Option<Page>, PgError> {
    let tables: Vec<Oid> = tables.iter().map(|oid| Oid(*oid)).collect();
    let rows: Vec<Row> = sqlx::query_as(
        "select tick, seq, generation, to_char(at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') as occurred_at, \
                rel::int8 as rel, op::text as op, cause, image from dl.events($1, $2, $3, $4, $5)",
    )
    .bind(after.tick)
    .bind(after.seq)
    .bind(tables)
    .bind(ops)
    .bind(max)
    .fetch_all(conn)
    .await?;
    let is_kept = rows.last().is_some_and(|row| row.op.is_none());
    Ok(is_kept.then(|| paged(rows.into_iter(), after, max)))
}

/// A page of at most `max` changes behind `after`, of all rows of an answer.
pub(crate) fn paged(rows: impl ExactSizeIterator<Item = Row>, after: Position, max: i32) -> Page {
    let mut page = Page { changes: Vec::with_capacity(rows.len()), next: after, generation: 0 };
    for row in rows {
        let at = Position { tick: row.tick, seq: row.seq };
        let generation = row.generation;
        let Row { occurred_at: Some(occurred_at), rel: Some(rel), op: Some(op), cause, image, .. } = row
        else {
            // the last one; a full page goes on behind its last change
            if i32::try_from(page.changes.len()).is_ok_and(|n| n < max) {
                (page.next, page.generation) = (at, generation);
            }
            continue;
        };
        (page.next, page.generation) = (at, generation);
        let table = u32::try_from(rel).unwrap_or_default();
        page.changes.push(Change { at, generation, occurred_at, table, op, cause, image });
    }
    page
}

/// What the log of row changes takes, and since when it holds events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct LogSize {
    pub bytes: i64,
    /// The beginning of its first day, in seconds since 1970.
    pub oldest: i64,
}

pub async fn log_size(conn: &mut PgConnection) -> Result<LogSize, PgError> {
    let size = sqlx::query_as("select bytes, extract(epoch from oldest)::int8 as oldest from dl.log_size()");
    Ok(size.fetch_one(conn).await?)
}

/// What is left once the days that are over were emptied.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Retired {
    pub bytes: i64,
    /// The first day that is kept.
    pub oldest: String,
    /// It is longer ago than events are kept.
    pub is_late: bool,
    /// Days before this one were given up early, because of the limit of bytes.
    pub cut_day: Option<String>,
}

/// Empties the days that are over, and more of them where the log takes more than this; as the owner.
pub async fn retire(conn: &mut PgConnection, max_bytes: u64) -> Result<Retired, PgError> {
    // days that nobody reads belong to some tick, too
    tick(&mut *conn).await?;
    let retired = sqlx::query_as(
        "select bytes, oldest::text as oldest, oldest < (now() at time zone 'UTC')::date - 8 as is_late, cut_day::text as cut_day \
         from dl.retire($1)",
    );
    Ok(retired.bind(i64::try_from(max_bytes).unwrap_or(i64::MAX)).fetch_one(conn).await?)
}

/// A policy that cannot be evaluated over a stored row.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Undecidable {
    pub schema: String,
    pub table: String,
    pub policy: String,
    /// The SQLSTATE with which PostgreSQL refuses it.
    pub code: String,
}

/// Of the tables that are captured; as the owner.
pub async fn undecidable(conn: &mut PgConnection) -> Result<Vec<Undecidable>, PgError> {
    let rows = sqlx::query_as("select \"schema\", \"table\", policy, code from dl.undecidable()");
    Ok(rows.fetch_all(conn).await?)
}
