//! What is true of a tenant's subscriptions, for those who ask in the cluster, and what one replica at a time looks after.

use rowgate_core::name::Ulid;
use sqlx::{FromRow, PgConnection};

use crate::failure::PgError;

/// How long a replica looks after a tenant's subscriptions without saying so again.
const SWEEP_MS: i64 = 6_000;
/// Events that are counted at most.
pub const MAX_LAG: i32 = 10_000;

/// One subscription, as it stands in `control.subscriptions`.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Fact {
    pub id: String,
    pub origin: String,
    pub uid: Option<String>,
    pub state: String,
    /// Events that are not delivered, [`MAX_LAG`] at most.
    pub lag: i64,
    /// JSON: what a mirror shows. Headers may hold credentials and are not in it.
    pub spec: String,
    /// JSON: what a status shows.
    pub status: String,
}

/// Whether this replica is the one that looks after the tenant's subscriptions, from now on for a few seconds.
pub async fn takes_sweep(conn: &mut PgConnection, replica: &Ulid) -> Result<bool, PgError> {
    let update = sqlx::query(
        "update dl.delivery set replica = $1, until = clock_timestamp() + $2 * interval '1 millisecond'
         where replica = $1 or until is null or until < clock_timestamp()",
    );
    Ok(update.bind(replica.as_str()).bind(SWEEP_MS).execute(conn).await?.rows_affected() == 1)
}

/// Notes whose owner keys live by now, and how many subscriptions that changed.
pub async fn note_owners(conn: &mut PgConnection) -> Result<u64, PgError> {
    let update = sqlx::query(
        "update dl.subscriptions s set owner_inactive = not s.owner_inactive
         where s.owner_inactive = exists (select from dl.live l where l.id = s.owner_key)",
    );
    Ok(update.execute(conn).await?.rows_affected())
}

/// Disables the subscriptions with an event that was captured 30 days ago and is not delivered, and releases what was kept
/// for them. Their ids.
pub async fn disable_undelivered(conn: &mut PgConnection) -> Result<Vec<String>, PgError> {
    let update = sqlx::query_scalar(
        "with late as (
             select distinct subscription as id from dl.backlog where at < clock_timestamp() - interval '30 days'
         ),
         disabled as (
             update dl.subscriptions s set state = 'disabled', reason = 'Undelivered', lease = null, lease_until = null,
                 batch_id = null, batch_tick = null, batch_seq = null, batch_events = null, attempts = 0, next_at = null,
                 batch_limit = null, cursor_tick = greatest(s.cursor_tick, (select l.floor + 1 from dl.event_log l)),
                 cursor_seq = case when s.cursor_tick > (select l.floor from dl.event_log l) then s.cursor_seq else 0 end
             from late where s.id = late.id
             returning s.id
         ),
         released as (delete from dl.backlog b using disabled d where b.subscription = d.id)
         select id from disabled",
    );
    Ok(update.fetch_all(conn).await?)
}

/// What a subscription `s` has not delivered: `lag.n` events, of which it knows the oldest. `$1`: the newest tick, `$2`: [`MAX_LAG`]. The
/// condition says which subscriptions `x` there may be. Those that stand at one position of the log are counted once, without their images.
macro_rules! lag {
    ($which:literal) => {
        concat!(
            "left join (
                 select b.of, b.cursor_tick, b.cursor_seq, b.rels, b.ops, least(count(e.op), $2) as n,
                     to_char(min(e.at) at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as oldest
                 from (
                     select min(x.id) as one, case when x.cursor_tick <= l.floor then x.id end as of, x.cursor_tick, x.cursor_seq,
                         x.rels, x.ops
                     from dl.subscriptions x cross join dl.event_log l
                     where x.cursor_tick <= $1 and x.rels is not null and ",
            $which,
            "
                     group by 2, 3, 4, 5, 6
                 ) b
                 cross join lateral dl.pending(b.one, b.cursor_tick, b.cursor_seq, b.rels, b.ops || '#'::text, $2) e
                 group by 1, 2, 3, 4, 5
             ) lag on (lag.of is null or lag.of = s.id) and lag.cursor_tick = s.cursor_tick and lag.cursor_seq = s.cursor_seq
                 and lag.rels = s.rels and lag.ops = s.ops"
        )
    };
}
pub(crate) use lag;

/// All subscriptions. `newest`: of the tenant's ticks; one whose position is behind it has nothing to deliver.
pub async fn all(conn: &mut PgConnection, newest: i64) -> Result<Vec<Fact>, PgError> {
    let query = sqlx::query_as(concat!(
        "select s.id, s.origin, s.uid, s.state, coalesce(lag.n, 0)::bigint as lag,
             json_build_object('name', s.name, 'url', s.url, 'ownerKey', s.owner_key, 'tables', s.tables,
                 'ops', array(select case op when 'i' then 'insert' when 'u' then 'update' when 'd' then 'delete' else 'truncate' end
                              from unnest(s.ops) op),
                 'payloadQuery', s.payload_query, 'suspend', s.suspend,
                 'batch', json_build_object('maxEvents', s.max_events, 'maxBytes', s.max_bytes),
                 'retry', json_build_object('maxAttempts', s.max_attempts, 'initialSeconds', s.initial_seconds,
                     'maxSeconds', s.max_seconds, 'disableOnGone', s.disable_on_gone))::text as spec,
             json_build_object('id', s.id, 'state', s.state, 'reason', s.reason, 'suspend', s.suspend,
                 'lagEvents', coalesce(lag.n, 0), 'oldestUndelivered', lag.oldest,
                 'consecutiveDeadLetters', s.consecutive_dead_letters,
                 'deadLetters', (select count(*) from dl.dead_letters d where d.subscription = s.id and d.delivered_at is null),
                 'lastDelivery', to_char(s.last_delivery_at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'),
                 'lastError', s.last_error, 'lastReplay', s.last_replay,
                 'delivering', s.state = 'enabled' and not s.suspend and not s.owner_inactive and s.batch_id is null,
                 'deliveringReason', case when s.owner_inactive then 'OwnerInactive' when s.state = 'disabled' then 'Disabled'
                     when s.suspend then 'Suspended' when s.batch_id is not null then 'Failing' else 'Delivering' end)::text as status
         from dl.subscriptions s ",
        lag!("true"),
        " order by s.id"
    ));
    Ok(query.bind(newest).bind(MAX_LAG).fetch_all(conn).await?)
}
