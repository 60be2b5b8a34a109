//! The subscriptions that Kubernetes declares, as they stand in the tenant's database. As `t<id>_owner`.

use std::collections::BTreeMap;

use rowgate_core::name::Ulid;
use rowgate_sql::ddl::subscriptions::Settings;
use sqlx::{FromRow, PgConnection};

use crate::failure::PgError;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    pub id: Ulid,
    /// Of the WebhookSubscription.
    pub uid: String,
    pub settings: Settings,
    /// The value of the annotation that was acted on last.
    pub last_replay: Option<String>,
    /// Those that sign, the newest first.
    pub secrets: Vec<Sealed>,
}

/// A secret that signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub sealed: Vec<u8>,
    /// It has no end.
    pub is_current: bool,
}

#[derive(FromRow)]
struct Row {
    id: String,
    uid: Option<String>,
    name: String,
    owner_key: String,
    url: String,
    tables: Option<Vec<String>>,
    ops: Vec<String>,
    payload_query: Option<String>,
    headers: String,
    max_events: i32,
    max_bytes: i32,
    max_attempts: i32,
    initial_seconds: i32,
    max_seconds: i32,
    disable_on_gone: bool,
    suspend: bool,
    last_replay: Option<String>,
}

/// How many subscriptions a tenant has, those of the API among them.
pub async fn count_all(conn: &mut PgConnection) -> Result<i64, PgError> {
    Ok(sqlx::query_scalar("select count(*) from dl.subscriptions").fetch_one(conn).await?)
}

/// All of a tenant's.
pub async fn all(conn: &mut PgConnection) -> Result<Vec<Declared>, PgError> {
    let query = sqlx::query_as(
        "select id, uid, name, owner_key, url, tables, ops, payload_query, headers::text as headers, max_events, max_bytes,
             max_attempts, initial_seconds, max_seconds, disable_on_gone, suspend, last_replay
         from dl.subscriptions where origin = 'kubernetes' order by id",
    );
    let rows: Vec<Row> = query.fetch_all(&mut *conn).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let query = sqlx::query_as(
        "select x.subscription, x.sealed, x.expires_at is null from dl.subscription_secrets x
         join dl.subscriptions s on s.id = x.subscription
         where s.origin = 'kubernetes' and (x.expires_at is null or clock_timestamp() < x.expires_at)
         order by x.created_at desc, x.id desc",
    );
    let mut secrets: BTreeMap<String, Vec<Sealed>> = BTreeMap::new();
    let found: Vec<(String, Vec<u8>, bool)> = query.fetch_all(conn).await?;
    for (subscription, sealed, is_current) in found {
        secrets.entry(subscription).or_default().push(Sealed { sealed, is_current });
    }
    let declared = rows.into_iter().filter_map(|row| {
        let secrets = secrets.remove(&row.id).unwrap_or_default();
        Some(Declared {
            id: row.id.parse().ok()?,
            uid: row.uid?,
            last_replay: row.last_replay,
            secrets,
            settings: Settings {
                name: row.name,
                owner_key: row.owner_key,
                url: row.url,
                tables: row.tables,
                ops: row.ops,
                payload_query: row.payload_query,
                headers: serde_json::from_str(&row.headers).unwrap_or_default(),
                max_events: row.max_events,
                max_bytes: row.max_bytes,
                max_attempts: row.max_attempts,
                initial_seconds: row.initial_seconds,
                max_seconds: row.max_seconds,
                disable_on_gone: row.disable_on_gone,
                suspend: row.suspend,
            },
        })
    });
    Ok(declared.collect())
}
