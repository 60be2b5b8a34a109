//! A replay: a subscription is set back, so that events are sent to it again. It never moves one forward.

use jiff::Timestamp;
use sqlx::postgres::types::Oid;
use sqlx::{Connection as _, FromRow, PgConnection};

use crate::failure::PgError;
use crate::tenant::delivery::facts::MAX_LAG;
use crate::tenant::events::Position;

/// Pages of events that are looked through at most to count them.
const MAX_PAGES: usize = 100;

/// Where a replay is to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// The oldest event that is kept.
    RetentionStart,
    /// The event of this id.
    EventId { generation: i32, tick: i64, seq: i64 },
    /// What became visible at this time or later.
    Utc(Timestamp),
}

/// Where a subscription begins again, and how much it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// Of the position.
    pub generation: i32,
    /// Events behind it are sent.
    pub from: Position,
    /// At most [`MAX_LAG`] are counted.
    pub n_events: i64,
}

impl Replayed {
    /// The position as callers write it.
    #[must_use]
    pub fn cursor(&self) -> String {
        format!("{}.{}.{}", self.generation, self.from.tick, self.from.seq)
    }
}

/// Why there is no replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("there is no subscription of this id")]
    NoSubscription,
    /// It is not one of the subscription's, or none at all.
    #[error("there is no event of this id among those of the subscription's tables")]
    UnknownEvent,
    #[error("the event of this id is no longer kept")]
    ExpiredEvent,
    #[error(transparent)]
    Pg(#[from] PgError),
}

impl std::convert::From<sqlx::Error> for ReplayError {
    fn from(error: sqlx::Error) -> ReplayError {
        ReplayError::Pg(error.into())
    }
}

/// A subscription and the log, as they are while its row is locked, or for a dry run were at one moment.
#[derive(FromRow)]
struct Present {
    rels: Option<Vec<Oid>>,
    ops: Vec<String>,
    cursor_tick: i64,
    cursor_seq: i64,
    floor: i64,
    newest: i64,
}

/// Sets the subscription back to `from`, enables it and forgets its failures. A delivery under way writes nothing any more. With
/// `dry_run` it only says what would be.
pub async fn replay(
    conn: &mut PgConnection,
    id: &str,
    from: &From,
    dry_run: bool,
) -> Result<Replayed, ReplayError> {
    let mut open = conn.begin().await?;
    let replayed = within(&mut open, id, from, dry_run).await;
    // not left to the drop, which sends it with what is asked next, and a look-up connection may rest for a minute
    match &replayed {
        Ok(_) if !dry_run => open.commit().await?,
        _ => open.rollback().await?,
    }
    replayed
}

async fn within(
    open: &mut PgConnection,
    id: &str,
    from: &From,
    dry_run: bool,
) -> Result<Replayed, ReplayError> {
    macro_rules! present {
        ($lock:literal) => {
            concat!(
                "select s.rels, s.ops, s.cursor_tick, s.cursor_seq, l.floor, (select max(number) from dl.ticks) as newest
                 from dl.subscriptions s cross join dl.event_log l where s.id = $1",
                $lock
            )
        };
    }
    // deliveries go on while it is only counted
    let query = if dry_run { present!("") } else { present!(" for update of s") };
    let present: Option<Present> = sqlx::query_as(query).bind(id).fetch_optional(&mut *open).await?;
    let present = present.ok_or(ReplayError::NoSubscription)?;
    let cursor = Position { tick: present.cursor_tick, seq: present.cursor_seq };
    let asked = match from {
        From::RetentionStart => Position { tick: present.floor + 1, seq: 0 },
        From::EventId { generation, tick, seq } => {
            let at = Position { tick: *tick, seq: *seq };
            event(open, id, &present, *generation, at).await?
        }
        From::Utc(utc) => time(open, &present, *utc).await?,
    };
    let to = asked.min(cursor);
    let n_events = count(open, id, &present, to).await?;
    if !dry_run {
        set_back(open, id, to, (to < cursor).then_some(cursor)).await?;
    }
    let generation = generation(open, if to.seq == 0 { to.tick - 1 } else { to.tick }).await?;
    Ok(Replayed { generation: generation.unwrap_or_default(), from: to, n_events })
}

/// Of a tick, also of one that is no longer kept.
async fn generation(conn: &mut PgConnection, tick: i64) -> Result<Option<i32>, PgError> {
    Ok(sqlx::query_scalar("select dl.generation_of($1)").bind(tick).fetch_one(conn).await?)
}

/// The position before an event.
async fn event(
    conn: &mut PgConnection,
    id: &str,
    present: &Present,
    of: i32,
    at: Position,
) -> Result<Position, ReplayError> {
    let before = Position { seq: at.seq - 1, ..at };
    let is_of = generation(conn, at.tick).await? == Some(of);
    if !is_of || present.newest < at.tick || at.seq < 1 {
        return Err(ReplayError::UnknownEvent);
    }
    let is_kept = present.floor < at.tick;
    if !is_kept && before < (Position { tick: present.cursor_tick, seq: present.cursor_seq }) {
        return Err(ReplayError::ExpiredEvent);
    }
    let found: Option<i64> = sqlx::query_scalar(
        "select seq from dl.pending($1, $2, $3, $4, '{i,u,d,t}'::text[], 1) where op is not null and tick = $2 and seq = $3 + 1",
    )
    .bind(id)
    .bind(before.tick)
    .bind(before.seq)
    .bind(present.rels.as_deref().unwrap_or_default())
    .fetch_optional(conn)
    .await?;
    // before the first delivery the tables of a subscription that Kubernetes declares are not known
    match found.is_some() || present.rels.is_none() {
        true => Ok(before),
        false => Err(ReplayError::UnknownEvent),
    }
}

/// The position before what became visible from `utc` on: an event is captured before the tick that shows it is made.
async fn time(conn: &mut PgConnection, present: &Present, utc: Timestamp) -> Result<Position, ReplayError> {
    let tick: Option<i64> = sqlx::query_scalar(
        "select min(number) from dl.ticks
         where number > $1 and at >= timestamptz 'epoch' + $2 * interval '1 microsecond'",
    )
    .bind(present.floor)
    .bind(utc.as_microsecond())
    .fetch_one(&mut *conn)
    .await?;
    let Some(tick) = tick else { return Ok(Position { tick: present.newest + 1, seq: 0 }) };
    // within the tick, as far as one look shows it
    let (n, seq): (i64, Option<i64>) = sqlx::query_as(
        "select count(*), min(seq) filter (where at >= timestamptz 'epoch' + $4 * interval '1 microsecond')
         from dl.events($1, 0, $2, $3 || '#'::text, 1000) where tick = $1 and op is not null",
    )
    .bind(tick)
    .bind(present.rels.as_deref().unwrap_or_default())
    .bind(&present.ops)
    .bind(utc.as_microsecond())
    .fetch_one(conn)
    .await?;
    let seq = seq.filter(|_| n < 1000).map_or(0, |seq| seq - 1);
    Ok(Position { tick, seq })
}

/// Events of the subscription behind the position, read without their images (`#`, as 0021_event_counts.sql says).
async fn count(
    conn: &mut PgConnection,
    id: &str,
    present: &Present,
    mut from: Position,
) -> Result<i64, ReplayError> {
    let most = i64::from(MAX_LAG);
    let mut n_events = 0;
    for _ in 0..MAX_PAGES {
        let page: Option<(i64, i64, i64)> = sqlx::query_as(
            "with page as (select tick, seq, op from dl.pending($1, $2, $3, $4, $5 || '#'::text, $6))
             select (select count(op) from page), tick, seq from page order by tick desc, seq desc limit 1",
        )
        .bind(id)
        .bind(from.tick)
        .bind(from.seq)
        .bind(present.rels.as_deref().unwrap_or_default())
        .bind(&present.ops)
        .bind(MAX_LAG)
        .fetch_optional(&mut *conn)
        .await?;
        // none: the log gave up what was counted
        let Some((n, tick, seq)) = page else { break };
        n_events += n;
        from = from.max(Position { tick, seq });
        if most <= n_events || present.newest < from.tick {
            break;
        }
    }
    Ok(n_events.min(most))
}

/// `again`: events before it are sent again.
async fn set_back(
    conn: &mut PgConnection,
    id: &str,
    to: Position,
    again: Option<Position>,
) -> Result<(), ReplayError> {
    sqlx::query(
        "update dl.subscriptions s set state = 'enabled', reason = null, consecutive_dead_letters = 0, cursor_tick = $2,
             cursor_seq = $3, batch_id = null, batch_tick = null, batch_seq = null, batch_events = null, attempts = 0,
             next_at = null, batch_limit = null, lease = null, lease_until = null,
             replay_tick = case when is_later then $4 else s.replay_tick end,
             replay_seq = case when is_later then $5 else s.replay_seq end
         from (select o.id, $4::bigint is not null
                   and (o.replay_tick is null or (o.replay_tick, o.replay_seq) < ($4, $5)) as is_later
               from dl.subscriptions o) o
         where s.id = $1 and o.id = s.id",
    )
    .bind(id)
    .bind(to.tick)
    .bind(to.seq)
    .bind(again.map(|at| at.tick))
    .bind(again.map(|at| at.seq))
    .execute(conn)
    .await?;
    Ok(())
}
