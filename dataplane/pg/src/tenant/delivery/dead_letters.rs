//! Dead letters as they are sent again.

use rowgate_core::name::Ulid;
use serde::Deserialize;
use sqlx::{FromRow, PgConnection};

use super::commit::Attempted;
use crate::failure::PgError;
use crate::tenant::events::{Change, Position};

/// One that is to be sent again.
#[derive(Debug)]
pub struct Redrive {
    pub id: String,
    pub attempts: i32,
    pub changes: Vec<Change>,
}

/// What becomes of dead letters that are to be sent again.
#[derive(Debug)]
pub enum Next {
    /// The one that was asked for first.
    One(Redrive),
    Nothing,
    /// The subscription is suspended or was changed, or the lease is another's.
    Held,
}

#[derive(FromRow)]
struct Row {
    id: Option<String>,
    attempts: Option<i32>,
    changes: Option<String>,
}

/// A change as it stands in a dead letter.
#[derive(Deserialize)]
struct Captured {
    tick: i64,
    seq: i64,
    generation: i32,
    at: String,
    rel: u32,
    op: String,
    cause: Option<i64>,
    image: Option<Box<serde_json::value::RawValue>>,
}

/// What is to be sent again next, of a subscription that is held under this lease and still of this version.
pub async fn next(
    conn: &mut PgConnection,
    subscription: &str,
    lease: &Ulid,
    version: i64,
) -> Result<Next, PgError> {
    let query = sqlx::query_as(
        "select d.id, d.attempts, d.changes::text as changes
         from dl.subscriptions s
         left join lateral (
             select * from dl.dead_letters d
             where d.subscription = s.id and d.redrive_at is not null order by d.redrive_at, d.at limit 1
         ) d on true
         where s.id = $1 and s.lease = $2 and s.version = $3 and not s.suspend",
    );
    let found = query.bind(subscription).bind(lease.as_str()).bind(version).fetch_optional(conn).await?;
    let Some(Row { id, attempts, changes }) = found else { return Ok(Next::Held) };
    let (Some(id), Some(attempts), Some(changes)) = (id, attempts, changes) else {
        return Ok(Next::Nothing);
    };
    let unreadable = |_| PgError::unexpected("a dead letter holds changes that are not in our form");
    let changes: Vec<Captured> = serde_json::from_str(&changes).map_err(unreadable)?;
    let change = |it: Captured| Change {
        at: Position { tick: it.tick, seq: it.seq },
        generation: it.generation,
        occurred_at: it.at,
        table: it.rel,
        op: it.op,
        cause: it.cause,
        image: it.image.filter(|image| image.get() != "null").map(|image| image.get().to_owned()),
    };
    Ok(Next::One(Redrive { id, attempts, changes: changes.into_iter().map(change).collect() }))
}

/// Notes what became of it, if the lease is still held. `attempted`: `None` where nothing was left to send.
pub async fn sent(
    conn: &mut PgConnection,
    subscription: &str,
    lease: &Ulid,
    id: &str,
    is_delivered: bool,
    attempted: Option<&Attempted>,
) -> Result<bool, PgError> {
    let update = sqlx::query(
        "with done as (
             update dl.dead_letters d set redrive_at = null, attempts = d.attempts + 1,
                 delivered_at = case when $4 then clock_timestamp() end,
                 last_status = $9, last_error = $10
             from dl.subscriptions s
             where d.id = $3 and d.subscription = $1 and s.id = $1 and s.lease = $2
             returning d.subscription
         ),
         logged as (
             insert into dl.deliveries (subscription, batch, attempt, took_ms, n_events, n_bytes, first_event, last_event, status,
                 error, request, response)
             select subscription, $3, $5, $6, $7, $8, $11, $12, $9, $10, $13, $14 from done where $5 is not null
         )
         select from done",
    );
    let update = update
        .bind(subscription)
        .bind(lease.as_str())
        .bind(id)
        .bind(is_delivered)
        .bind(attempted.map(|it| it.attempt))
        .bind(attempted.map(|it| it.took_ms))
        .bind(attempted.map(|it| it.n_events))
        .bind(attempted.map(|it| it.n_bytes))
        .bind(attempted.and_then(|it| it.status))
        .bind(attempted.and_then(|it| it.error.as_deref()))
        .bind(attempted.map(|it| it.first_event.as_str()))
        .bind(attempted.map(|it| it.last_event.as_str()))
        .bind(attempted.and_then(|it| it.request.as_deref()))
        .bind(attempted.and_then(|it| it.response.as_deref()));
    Ok(update.fetch_optional(conn).await?.is_some())
}
