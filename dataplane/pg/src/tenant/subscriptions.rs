//! Webhook subscriptions as the key that owns them sees and changes them; as `t<id>_lookups`.

use sqlx::{FromRow, PgConnection};

use crate::failure::PgError;
use crate::tenant::delivery::facts::{self, MAX_LAG};

pub mod change;
pub mod past;

/// What a caller writes of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Spec {
    pub name: String,
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
    pub suspend: bool,
}

/// A subscription as it is now.
#[derive(Debug, Clone, FromRow)]
pub struct Subscription {
    pub id: String,
    /// `api` or `kubernetes`.
    pub origin: String,
    pub owner_key: String,
    #[sqlx(flatten)]
    pub spec: Spec,
    pub version: i64,
    /// `enabled` or `disabled`.
    pub state: String,
    pub reason: Option<String>,
    pub owner_inactive: bool,
    /// A batch waits to be tried again.
    pub is_failing: bool,
    /// As callers write it.
    pub cursor: String,
    pub consecutive_dead_letters: i32,
    pub dead_letters: i64,
    pub lag_events: i64,
    pub oldest_undelivered: Option<String>,
    pub last_delivery: Option<String>,
    pub last_error: Option<String>,
    pub last_error_at: Option<String>,
    pub created_at: String,
}

/// `$1`: the newest tick, `$2`: [`MAX_LAG`], `$3`: the key, `$4`: an id, or null for all.
macro_rules! subscriptions {
    () => {
        concat!(
            "select s.id, s.origin, s.owner_key, s.name, s.url, s.tables, s.ops, s.payload_query, s.headers::text as headers,
                 s.max_events, s.max_bytes, s.max_attempts, s.initial_seconds, s.max_seconds, s.disable_on_gone, s.suspend,
                 s.version, s.state, s.reason, s.owner_inactive, s.batch_id is not null as is_failing,
                 concat_ws('.', dl.generation_of(case s.cursor_seq when 0 then s.cursor_tick - 1 else s.cursor_tick end), s.cursor_tick, s.cursor_seq) as cursor,
                 s.consecutive_dead_letters,
                 (select count(*) from dl.dead_letters d where d.subscription = s.id and d.delivered_at is null) as dead_letters,
                 coalesce(lag.n, 0)::bigint as lag_events, lag.oldest as oldest_undelivered,
                 to_char(s.last_delivery_at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as last_delivery, s.last_error,
                 to_char(s.last_error_at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as last_error_at,
                 to_char(s.created_at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as created_at
             from dl.subscriptions s ",
            facts::lag!("x.owner_key = $3 and ($4::text is null or x.id = $4)"),
            " where s.owner_key = $3 and ($4::text is null or s.id = $4) order by s.id"
        )
    };
}

/// Those of the key. `newest`: of the tenant's ticks.
pub async fn list(conn: &mut PgConnection, owner: &str, newest: i64) -> Result<Vec<Subscription>, PgError> {
    let query = sqlx::query_as(subscriptions!()).bind(newest).bind(MAX_LAG).bind(owner).bind(None::<&str>);
    Ok(query.fetch_all(conn).await?)
}

/// One of the key's. `newest`: of the tenant's ticks.
pub async fn find(
    conn: &mut PgConnection,
    owner: &str,
    id: &str,
    newest: i64,
) -> Result<Option<Subscription>, PgError> {
    let query = sqlx::query_as(subscriptions!()).bind(newest).bind(MAX_LAG).bind(owner).bind(Some(id));
    Ok(query.fetch_optional(conn).await?)
}

/// Whether the tenant has one. False where it cannot be asked, as before its tables are made.
pub async fn any(conn: &mut PgConnection) -> bool {
    let query = sqlx::query_scalar("select exists (select from dl.subscriptions)");
    query.fetch_one(conn).await.unwrap_or_default()
}

/// Whether there is one of the key's.
pub async fn exists(conn: &mut PgConnection, owner: &str, id: &str) -> Result<bool, PgError> {
    let query =
        sqlx::query_scalar("select exists (select from dl.subscriptions where id = $1 and owner_key = $2)");
    Ok(query.bind(id).bind(owner).fetch_one(conn).await?)
}

/// The secrets that sign now, sealed, the newest first.
pub async fn secrets(conn: &mut PgConnection, id: &str) -> Result<Vec<Vec<u8>>, PgError> {
    let query = sqlx::query_scalar(
        "select sealed from dl.subscription_secrets
         where subscription = $1 and (expires_at is null or expires_at > now()) order by created_at desc",
    );
    Ok(query.bind(id).fetch_all(conn).await?)
}
