//! Subscriptions as those who deliver take them: claimed under a lease, read on, and written back by the one who still holds it.

use rowgate_core::name::Ulid;
use sqlx::postgres::types::Oid;
use sqlx::{FromRow, PgConnection};

use crate::failure::PgError;
use crate::tenant::events::{self, Page, Position};
use commit::Tables;

pub mod commit;
pub mod dead_letters;
pub mod facts;

/// How long a claim holds without being renewed.
pub const LEASE_MS: i64 = 3_000;

/// A subscription that is this replica's to deliver, for as long as its lease is renewed.
#[derive(Debug, Clone, FromRow)]
pub struct Claimed {
    pub id: String,
    pub owner_key: String,
    pub url: String,
    /// As they were named; `None`: all whose events the key may read.
    pub tables: Option<Vec<String>>,
    /// As stored.
    pub ops: Vec<String>,
    pub payload_query: Option<String>,
    /// An object of texts.
    pub headers: String,
    pub max_events: i32,
    pub max_bytes: i32,
    pub max_attempts: i32,
    pub initial_seconds: i32,
    pub max_seconds: i32,
    pub disable_on_gone: bool,
    pub version: i64,
    pub state: String,
    pub suspend: bool,
    pub reason: Option<String>,
    pub consecutive_dead_letters: i32,
    pub cursor_tick: i64,
    pub cursor_seq: i64,
    pub replay_tick: Option<i64>,
    pub replay_seq: Option<i64>,
    pub batch_id: Option<String>,
    pub batch_tick: Option<i64>,
    pub batch_seq: Option<i64>,
    pub batch_events: Option<i32>,
    pub attempts: i32,
    pub batch_limit: Option<i32>,
    /// The tables as they were found for a batch before.
    rels: Option<Vec<Oid>>,
    rels_of: Option<String>,
    /// The secrets that sign now, sealed, the newest first.
    pub secrets: Vec<Vec<u8>>,
    /// A dead letter of it is to be sent again.
    pub redrives: bool,
}

impl Claimed {
    /// Whether these tables are what stands in the database.
    #[must_use]
    pub fn knows(&self, tables: &Tables) -> bool {
        let rels = self.rels.iter().flatten().map(|oid| oid.0);
        self.rels.is_some()
            && rels.eq(tables.rels.iter().copied())
            && self.rels_of.as_ref() == Some(&tables.rels_of)
    }

    /// What was written of a batch.
    pub fn note(&mut self, tables: Tables) {
        self.rels = Some(tables.rels.into_iter().map(Oid).collect());
        self.rels_of = Some(tables.rels_of);
    }
}

macro_rules! claimed {
    ($($condition:literal),*) => {
        concat!(
            "with due as (
                 select id from dl.subscriptions
                 where (lease is null or lease_until < clock_timestamp()) and ",
            $($condition,)*
            "
                 order by last_delivery_at nulls first limit $3 for update skip locked
             )
             update dl.subscriptions s set lease = $1, lease_until = clock_timestamp() + $2 * interval '1 millisecond'
             from due where s.id = due.id
             returning s.id, s.owner_key, s.url, s.tables, s.ops, s.payload_query, s.headers::text as headers, s.max_events, s.max_bytes,
                 s.max_attempts, s.initial_seconds, s.max_seconds, s.disable_on_gone, s.version, s.state, s.suspend, s.reason,
                 s.consecutive_dead_letters, s.cursor_tick, s.cursor_seq, s.replay_tick, s.replay_seq, s.batch_id, s.batch_tick,
                 s.batch_seq, s.batch_events, s.attempts, s.batch_limit, s.rels, s.rels_of,
                 array(select k.sealed from dl.subscription_secrets k
                       where k.subscription = s.id and (k.expires_at is null or k.expires_at > now())
                       order by k.created_at desc) as secrets,
                 exists (select from dl.dead_letters d where d.subscription = s.id and d.redrive_at is not null) as redrives"
        )
    };
}

/// Takes the subscriptions for which something may be there, at most `most`: events up to the tick `newest` (`since`: where
/// an event of their tables became visible in it or in the ticks from `since` on), a batch whose time has come, or a dead letter
/// that is to be sent again. `lease` is a new random text. Those that were delivered to longest ago come first. As `t<id>_lookups`.
pub async fn claim(
    conn: &mut PgConnection,
    lease: &Ulid,
    newest: i64,
    since: Option<i64>,
    most: i64,
) -> Result<Vec<Claimed>, PgError> {
    let query = sqlx::query_as(claimed!(
        "not suspend and not owner_inactive and (
             state = 'enabled' and case when batch_id is not null then next_at <= clock_timestamp()
                 else cursor_tick <= $4 and (rels is null or $5::bigint is null or rels && (select dl.changed($5, $4))) end
             or $5 is null and exists (
                 select from dl.dead_letters d where d.subscription = subscriptions.id and d.redrive_at is not null))"
    ));
    let query = query.bind(lease.as_str()).bind(LEASE_MS).bind(most).bind(newest).bind(since);
    Ok(query.fetch_all(conn).await?)
}

/// Prolongs what is held under these leases, but for what another transaction changes at the moment: mostly it prolongs that, or gives it
/// back, and the next round is soon enough.
pub async fn renew(conn: &mut PgConnection, leases: &[String]) -> Result<(), PgError> {
    let update = sqlx::query(
        "update dl.subscriptions set lease_until = clock_timestamp() + $2 * interval '1 millisecond'
         where id in (select s.id from dl.subscriptions s where s.lease = any($1) for no key update skip locked)",
    );
    update.bind(leases).bind(LEASE_MS).execute(conn).await?;
    Ok(())
}

/// Gives back what was not begun, so that another replica takes it at once.
pub async fn release(conn: &mut PgConnection, id: &str, lease: &Ulid) -> Result<(), PgError> {
    let update = sqlx::query(
        "update dl.subscriptions set lease = null, lease_until = null where id = $1 and lease = $2",
    );
    update.bind(id).bind(lease.as_str()).execute(conn).await?;
    Ok(())
}

/// Moves on the subscriptions that have read all up to the tick before `since`, where no event of their tables is in the ticks
/// from there to `newest`, so that they need not be claimed to find nothing. Only those whose tables were looked up by `catalog`
/// and with the rights that their keys have now: for another one, an event may be there.
pub async fn pass_over(
    conn: &mut PgConnection,
    since: i64,
    newest: i64,
    catalog: &str,
) -> Result<(), PgError> {
    let update = sqlx::query(
        "update dl.subscriptions s set cursor_tick = $2 + 1, cursor_seq = 0
         where s.cursor_tick between $1 and $2 and s.lease is null and s.batch_id is null
             and s.rels_of = (select $3 || coalesce(l.set_role::text, '') from dl.live l where l.id = s.owner_key limit 1)
             and not s.rels && (select dl.changed($1, $2))",
    );
    update.bind(since).bind(newest).bind(catalog).execute(conn).await?;
    Ok(())
}

/// What a subscription has not delivered.
#[derive(Debug)]
pub struct Pending {
    pub page: Page,
    /// As it was when this was read: a position of at most this tick was read from the backlog.
    pub floor: i64,
}

/// The changes that a subscription has not delivered, as [`events::page`] gives them.
pub async fn pending(
    conn: &mut PgConnection,
    id: &str,
    after: Position,
    tables: &[u32],
    ops: &[String],
    max: i32,
) -> Result<Pending, PgError> {
    let tables: Vec<Oid> = tables.iter().map(|oid| Oid(*oid)).collect();
    let rows = sqlx::query_as(concat!(
        "select tick, seq, generation, to_char(at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') as occurred_at, ",
        "rel::int8 as rel, op::text as op, cause, image, (select floor from dl.event_log) as floor ",
        "from dl.pending($1, $2, $3, $4, $5, $6)"
    ));
    let rows = rows.bind(id).bind(after.tick).bind(after.seq).bind(tables).bind(ops).bind(max);
    let rows: Vec<Row> = rows.fetch_all(conn).await?;
    let floor = rows.first().map_or(0, |row| row.floor);
    Ok(Pending { page: events::paged(rows.into_iter().map(|row| row.change), after, max), floor })
}

#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    change: events::Row,
    floor: i64,
}
