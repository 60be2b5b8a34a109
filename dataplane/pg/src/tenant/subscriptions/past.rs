//! What became of deliveries: the newest attempts, and what was given up.

use sqlx::{FromRow, PgConnection};

use crate::failure::PgError;

/// One request to a receiver.
#[derive(Debug, Clone, FromRow)]
pub struct Delivery {
    pub id: i64,
    pub batch: String,
    pub attempt: i32,
    pub at: String,
    pub took_ms: i32,
    pub n_events: i32,
    pub n_bytes: i32,
    pub first_event: Option<String>,
    pub last_event: Option<String>,
    pub status: Option<i32>,
    pub error: Option<String>,
    pub request: Option<String>,
    pub response: Option<String>,
}

/// A batch that was given up.
#[derive(Debug, Clone, FromRow)]
pub struct DeadLetter {
    pub id: String,
    pub at: String,
    pub n_events: i32,
    pub attempts: i32,
    pub first_event: String,
    pub last_event: String,
    pub last_status: Option<i32>,
    pub last_error: Option<String>,
    pub redrive_at: Option<String>,
    pub delivered_at: Option<String>,
}

/// A change in a dead letter, without the row.
#[derive(Debug, Clone, FromRow)]
pub struct Given {
    pub tick: i64,
    pub seq: i64,
    pub at: String,
    pub rel: i64,
    pub op: String,
}

/// The newest attempts, those before `before` if it is given.
pub async fn deliveries(
    conn: &mut PgConnection,
    subscription: &str,
    before: Option<i64>,
    most: i64,
) -> Result<Vec<Delivery>, PgError> {
    let query = sqlx::query_as(
        "select id, batch, attempt, to_char(at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') as at, took_ms, n_events,
             n_bytes, first_event, last_event, status, error, request, response
         from dl.deliveries where subscription = $1 and id < $2 order by id desc limit $3",
    );
    let query = query.bind(subscription).bind(before.unwrap_or(i64::MAX)).bind(most);
    Ok(query.fetch_all(conn).await?)
}

/// The newest dead letters, those before `before` if it is given, or the one of this id.
pub async fn dead_letters(
    conn: &mut PgConnection,
    subscription: &str,
    one: Option<&str>,
    before: Option<&str>,
    most: i64,
) -> Result<Vec<DeadLetter>, PgError> {
    let query = sqlx::query_as(
        "select id, to_char(at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as at, n_events, attempts, first_event,
             last_event, last_status, last_error,
             to_char(redrive_at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as redrive_at,
             to_char(delivered_at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as delivered_at
         from dl.dead_letters
         where subscription = $1 and ($2::text is null or id = $2) and ($3::text is null or id < $3)
         order by id desc limit $4",
    );
    let query = query.bind(subscription).bind(one).bind(before).bind(most);
    Ok(query.fetch_all(conn).await?)
}

/// The changes of a dead letter, in their order.
pub async fn changes(conn: &mut PgConnection, dead_letter: &str) -> Result<Vec<Given>, PgError> {
    let query = sqlx::query_as(
        "select (c.of ->> 'tick')::bigint as tick, (c.of ->> 'seq')::bigint as seq, c.of ->> 'at' as at,
             (c.of ->> 'rel')::bigint as rel, c.of ->> 'op' as op
         from dl.dead_letters d cross join lateral json_array_elements(d.changes) with ordinality c(of, n)
         where d.id = $1 order by c.n",
    );
    Ok(query.bind(dead_letter).fetch_all(conn).await?)
}
