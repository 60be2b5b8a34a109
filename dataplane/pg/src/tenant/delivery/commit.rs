//! Writing back what became of a batch, with what is kept of the attempt, by the one who still holds the lease.

use std::collections::HashMap;

use rowgate_core::name::Ulid;
use sqlx::postgres::types::Oid;
use sqlx::{FromRow, PgConnection};

use super::LEASE_MS;
use crate::failure::PgError;
use crate::tenant::events::Position;

/// What a subscription is after a step.
#[derive(Debug, Clone)]
pub struct Written {
    /// `enabled` or `disabled`.
    pub state: &'static str,
    pub reason: Option<&'static str>,
    pub consecutive_dead_letters: i32,
    pub cursor: Position,
    /// Events before it are sent again.
    pub replay: Option<Position>,
    /// The batch that is tried again.
    pub batch: Option<WrittenBatch>,
    pub batch_limit: Option<i32>,
    /// The tables, as they were found for this batch; `None`: nothing was looked up.
    pub tables: Option<Tables>,
    pub attempt: Option<Attempted>,
    pub dead_letter: Option<DeadLetter>,
    /// What the log gave up for it is not delivered any more.
    pub releases_backlog: bool,
    /// The key does not live.
    pub owner_inactive: bool,
    /// The one who writes goes on delivering.
    pub keeps_lease: bool,
}

/// A batch that will be tried again.
#[derive(Debug, Clone)]
pub struct WrittenBatch {
    pub id: Ulid,
    pub to: Position,
    pub n_events: i32,
    pub attempts: i32,
    /// Milliseconds from now.
    pub wait_ms: i64,
}

/// One request to a receiver.
#[derive(Debug, Clone)]
pub struct Attempted {
    pub batch: Ulid,
    pub attempt: i32,
    pub took_ms: i32,
    pub n_events: i32,
    pub n_bytes: i32,
    /// EventIds.
    pub first_event: String,
    pub last_event: String,
    /// Of the answer, if there was one.
    pub status: Option<i32>,
    /// `None`: delivered.
    pub error: Option<String>,
    /// The beginning of what was sent, of an attempt that failed.
    pub request: Option<String>,
    /// The beginning of the answer.
    pub response: Option<String>,
}

/// The tables of a subscription.
#[derive(Debug, Clone)]
pub struct Tables {
    pub rels: Vec<u32>,
    /// By which catalog, and with which rights of the key, they were looked up.
    pub rels_of: String,
}

/// A batch that is given up.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    pub id: Ulid,
    pub n_events: i32,
    pub attempts: i32,
    pub first_event: String,
    pub last_event: String,
    /// The changes as they were captured, as a JSON array.
    pub changes: String,
    pub status: Option<i32>,
    pub error: Option<String>,
}

/// What the subscription is by now, for the one who goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct Standing {
    pub version: i64,
    pub suspend: bool,
}

/// What the subscription is by now, if the lease is still held.
pub async fn standing(conn: &mut PgConnection, id: &str, lease: &Ulid) -> Result<Option<Standing>, PgError> {
    let query = sqlx::query_as("select version, suspend from dl.subscriptions where id = $1 and lease = $2");
    Ok(query.bind(id).bind(lease.as_str()).fetch_optional(conn).await?)
}

/// A batch that was delivered, of a subscription of which nothing changes but its position.
#[derive(Debug, Clone)]
pub struct Delivered {
    pub subscription: String,
    pub lease: Ulid,
    pub cursor: Position,
    /// As [`commit`] takes it.
    pub read: Option<Position>,
    pub attempt: Attempted,
    /// The one who writes goes on delivering.
    pub keeps_lease: bool,
}

#[derive(FromRow)]
struct Settled {
    id: String,
    lease: String,
    #[sqlx(flatten)]
    standing: Standing,
}

/// Writes batches that were delivered, as [`commit`] does each: what each subscription is by now, by its id and the lease. One that is
/// missing was not written: its lease is lost, the log gave it up, or another transaction holds the subscription, for which none waits.
pub async fn delivered(
    conn: &mut PgConnection,
    all: &[Delivered],
) -> Result<HashMap<(String, String), Standing>, PgError> {
    fn each<'a, T>(all: &'a [Delivered], value: impl Fn(&'a Delivered) -> T) -> Vec<T> {
        all.iter().map(value).collect()
    }
    let query = sqlx::query_as(
        "with off as materialized (select set_config('synchronous_commit', 'off', true)),
         came as (
             select * from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[], $7::text[],
                 $8::integer[], $9::integer[], $10::integer[], $11::integer[], $12::text[], $13::text[], $14::integer[], $15::text[])
                 c (id, lease, tick, seq, read, keeps_lease, batch, attempt, took_ms, n_events, n_bytes, first_event, last_event,
                     status, response)
         ),
         held as materialized (
             select s.id from dl.subscriptions s join came c on c.id = s.id and c.lease = s.lease
             where c.read is null or c.read > (select l.floor from dl.event_log l)
             for no key update of s skip locked
         ),
         done as (
             update dl.subscriptions s set cursor_tick = c.tick, cursor_seq = c.seq, lease = case when c.keeps_lease then s.lease end,
                 lease_until = case when c.keeps_lease then clock_timestamp() + $16 * interval '1 millisecond' end,
                 last_delivery_at = clock_timestamp()
             from held h join came c using (id), off
             -- one that comes after it was given up, and was written alone, moves nothing back
             where s.id = h.id and s.lease = c.lease and (s.cursor_tick, s.cursor_seq) < (c.tick, c.seq)
             returning c.*, s.version, s.suspend
         ),
         logged as (
             insert into dl.deliveries (subscription, batch, attempt, took_ms, n_events, n_bytes, first_event, last_event, status,
                 response)
             select id, batch, attempt, took_ms, n_events, n_bytes, first_event, last_event, status, response from done
         )
         select id, lease, version, suspend from done",
    );
    let query = query
        .bind(each(all, |it| it.subscription.as_str()))
        .bind(each(all, |it| it.lease.as_str()))
        .bind(each(all, |it| it.cursor.tick))
        .bind(each(all, |it| it.cursor.seq))
        .bind(each(all, |it| it.read.map(|at| at.tick)))
        .bind(each(all, |it| it.keeps_lease))
        .bind(each(all, |it| it.attempt.batch.as_str()))
        .bind(each(all, |it| it.attempt.attempt))
        .bind(each(all, |it| it.attempt.took_ms))
        .bind(each(all, |it| it.attempt.n_events))
        .bind(each(all, |it| it.attempt.n_bytes))
        .bind(each(all, |it| it.attempt.first_event.as_str()))
        .bind(each(all, |it| it.attempt.last_event.as_str()))
        .bind(each(all, |it| it.attempt.status))
        .bind(each(all, |it| it.attempt.response.as_deref()))
        .bind(LEASE_MS);
    let settled: Vec<Settled> = query.fetch_all(conn).await?;
    Ok(settled.into_iter().map(|it| ((it.id, it.lease), it.standing)).collect())
}

/// Writes what became of a batch, if the lease is still held. `read`: where the batch was read from the log, its first position,
/// which the log may have given up since; what was read there may not have been all, so that nothing is written then either.
/// `None`: nothing was written.
///
/// A lost delivery is one that is repeated under the same ids, so that only what is given up waits for the disk.
pub async fn commit(
    conn: &mut PgConnection,
    id: &str,
    lease: &Ulid,
    read: Option<Position>,
    written: &Written,
) -> Result<Option<Standing>, PgError> {
    let Written { batch, attempt, dead_letter, .. } = written;
    let tables = written.tables.as_ref();
    let rels: Option<Vec<Oid>> = tables.map(|it| it.rels.iter().map(|oid| Oid(*oid)).collect());
    let is_kept = dead_letter.is_some() || written.state == "disabled";
    let failed = attempt.as_ref().and_then(|attempt| attempt.error.as_deref());
    let query = sqlx::query_as(
        "with durable as materialized (select set_config('synchronous_commit', case when $1 then 'on' else 'off' end, true)),
         done as (
             update dl.subscriptions s set state = $4, reason = $5, consecutive_dead_letters = $6, cursor_tick = $7, cursor_seq = $8,
                 replay_tick = $9, replay_seq = $10, batch_id = $11, batch_tick = $12, batch_seq = $13, batch_events = $14,
                 attempts = coalesce($15, 0), next_at = clock_timestamp() + $16 * interval '1 millisecond', batch_limit = $17,
                 rels = coalesce($18, s.rels), rels_of = coalesce($44, s.rels_of), owner_inactive = $19,
                 lease = case when $20 then s.lease end,
                 lease_until = case when $20 then clock_timestamp() + $21 * interval '1 millisecond' end,
                 last_delivery_at = case when $22 and $23::text is null then clock_timestamp() else s.last_delivery_at end,
                 last_error = coalesce($23, s.last_error),
                 last_error_at = case when $23 is null then s.last_error_at else clock_timestamp() end
             from durable
             where s.id = $2 and s.lease = $3 and ($24::bigint is null or $24 > (select l.floor from dl.event_log l))
             returning s.id, s.version, s.suspend
         ),
         logged as (
             insert into dl.deliveries (subscription, batch, attempt, took_ms, n_events, n_bytes, first_event, last_event, status,
                 error, request, response)
             select id, $25, $26, $27, $28, $29, $30, $31, $32, $23, $33, $34 from done where $22
         ),
         given_up as (
             insert into dl.dead_letters (id, subscription, n_events, attempts, first_event, last_event, changes, last_status,
                 last_error)
             select $35, id, $36, $37, $38, $39, $40::json, $41, $42 from done where $35 is not null
         ),
         released as (delete from dl.backlog b using done where $43 and b.subscription = done.id)
         select version, suspend from done",
    );
    let query = query
        .bind(is_kept)
        .bind(id)
        .bind(lease.as_str())
        .bind(written.state)
        .bind(written.reason)
        .bind(written.consecutive_dead_letters)
        .bind(written.cursor.tick)
        .bind(written.cursor.seq)
        .bind(written.replay.map(|at| at.tick))
        .bind(written.replay.map(|at| at.seq))
        .bind(batch.as_ref().map(|batch| batch.id.as_str()))
        .bind(batch.as_ref().map(|batch| batch.to.tick))
        .bind(batch.as_ref().map(|batch| batch.to.seq))
        .bind(batch.as_ref().map(|batch| batch.n_events))
        .bind(batch.as_ref().map(|batch| batch.attempts))
        .bind(batch.as_ref().map(|batch| batch.wait_ms))
        .bind(written.batch_limit)
        .bind(rels)
        .bind(written.owner_inactive)
        .bind(written.keeps_lease)
        .bind(LEASE_MS)
        .bind(attempt.is_some())
        .bind(failed)
        .bind(read.map(|at| at.tick));
    let of = attempt.as_ref();
    let query = query
        .bind(of.map(|it| it.batch.as_str()))
        .bind(of.map(|it| it.attempt))
        .bind(of.map(|it| it.took_ms))
        .bind(of.map(|it| it.n_events))
        .bind(of.map(|it| it.n_bytes))
        .bind(of.map(|it| it.first_event.as_str()))
        .bind(of.map(|it| it.last_event.as_str()))
        .bind(of.and_then(|it| it.status))
        .bind(of.and_then(|it| it.request.as_deref()))
        .bind(of.and_then(|it| it.response.as_deref()));
    let of = dead_letter.as_ref();
    let query = query
        .bind(of.map(|it| it.id.as_str()))
        .bind(of.map(|it| it.n_events))
        .bind(of.map(|it| it.attempts))
        .bind(of.map(|it| it.first_event.as_str()))
        .bind(of.map(|it| it.last_event.as_str()))
        .bind(of.map(|it| it.changes.as_str()))
        .bind(of.and_then(|it| it.status))
        .bind(of.and_then(|it| it.error.as_deref()))
        .bind(written.releases_backlog)
        .bind(tables.map(|it| it.rels_of.as_str()));
    Ok(query.fetch_optional(conn).await?)
}
