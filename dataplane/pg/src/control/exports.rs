//! Export jobs in the control database: what keys asked for, and what became of it. `leases` is how replicas run them.

use rowgate_core::name::Ulid;
use sqlx::{Connection as _, PgConnection};

use crate::failure::PgError;

pub mod leases;

/// "exports" in ASCII: one replica at a time admits, or claims.
const LOCK: i64 = 0x0065_7870_6f72_7473;

/// How many jobs of one key there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    pub waiting: i64,
    /// Finished ones among them.
    pub kept: i64,
}

/// A job that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct NewJob<'a> {
    pub id: &'a Ulid,
    pub tenant: &'a Ulid,
    pub key: &'a Ulid,
    /// JSON.
    pub request: &'a str,
    /// Of the file where it is downloaded.
    pub name: &'a str,
}

/// Why no job was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    Waiting,
    Kept,
}

/// A job as its key reads it. Times are RFC 3339 in UTC.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Job {
    pub id: String,
    /// Of the file where it is downloaded.
    pub name: String,
    pub status: String,
    pub fence: i32,
    pub rows: i64,
    pub bytes: i64,
    pub estimate: Option<i64>,
    pub capped: bool,
    pub event_cursor: Option<String>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub created_at: String,
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub expires_at: Option<String>,
    /// Seconds since 1970.
    pub expires: Option<i64>,
    /// How many jobs of the tenant begin before it; `None`: it does not wait.
    pub queue_position: Option<i64>,
}

macro_rules! utc {
    ($column:literal) => {
        concat!(
            "to_char(e.",
            $column,
            " at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') as ",
            $column
        )
    };
}

macro_rules! jobs {
    ($condition:literal) => {
        concat!(
            "select e.id, e.name, e.status, e.fence, e.rows, e.bytes, e.estimate, e.capped, e.event_cursor, e.error_code, e.error_message, ",
            utc!("created_at"),
            ", ",
            utc!("started_at"),
            ", ",
            utc!("finished_at"),
            ", ",
            utc!("expires_at"),
            ", floor(extract(epoch from e.expires_at))::bigint as expires,
             case when e.status = 'queued' then (
                 select count(*) from control.exports b
                 where b.tenant = e.tenant and b.status = 'queued' and (b.created_at, b.id) < (e.created_at, e.id)
             ) end as queue_position
             from control.exports e
             where e.tenant = $1 and e.key = $2 and (e.expires_at is null or clock_timestamp() < e.expires_at) ",
            $condition
        )
    };
}

/// Takes a job into the queue, unless the key has too many.
pub async fn create(
    conn: &mut PgConnection,
    new: NewJob<'_>,
    limits: QueueLimits,
) -> Result<Result<(), Full>, PgError> {
    let mut open = conn.begin().await?;
    lock(&mut open).await?;
    let count = sqlx::query_as(
        "select count(*) filter (where status = 'queued'), count(*) from control.exports
         where tenant = $1 and key = $2 and (expires_at is null or clock_timestamp() < expires_at)",
    );
    let count = count.bind(new.tenant.as_str()).bind(new.key.as_str());
    let (n_waiting, n_kept): (i64, i64) = count.fetch_one(&mut *open).await?;
    if limits.waiting <= n_waiting {
        return Ok(Err(Full::Waiting));
    }
    if limits.kept <= n_kept {
        return Ok(Err(Full::Kept));
    }
    let insert = sqlx::query(
        "insert into control.exports (id, tenant, key, request, name) values ($1, $2, $3, $4::json, $5)",
    );
    let insert = insert.bind(new.id.as_str()).bind(new.tenant.as_str()).bind(new.key.as_str());
    insert.bind(new.request).bind(new.name).execute(&mut *open).await?;
    open.commit().await?;
    Ok(Ok(()))
}

/// The job, if it is the key's.
pub async fn find(
    conn: &mut PgConnection,
    tenant: &Ulid,
    key: &Ulid,
    id: &str,
) -> Result<Option<Job>, PgError> {
    let query = sqlx::query_as(jobs!("and e.id = $3"));
    Ok(query.bind(tenant.as_str()).bind(key.as_str()).bind(id).fetch_optional(conn).await?)
}

/// The jobs of a key, the newest first.
pub async fn list(conn: &mut PgConnection, tenant: &Ulid, key: &Ulid) -> Result<Vec<Job>, PgError> {
    let query = sqlx::query_as(jobs!("order by e.created_at desc, e.id desc"));
    Ok(query.bind(tenant.as_str()).bind(key.as_str()).fetch_all(conn).await?)
}

/// Cancels a job that has not ended, for which it stays listed for `life` seconds, and forgets one that has. False: the key has no
/// such job.
pub async fn remove(
    conn: &mut PgConnection,
    tenant: &Ulid,
    key: &Ulid,
    id: &str,
    life: i32,
) -> Result<bool, PgError> {
    let mut open = conn.begin().await?;
    // one that ends at this moment has ended before the next statement looks
    let lock =
        sqlx::query("select from control.exports where tenant = $1 and key = $2 and id = $3 for update");
    lock.bind(tenant.as_str()).bind(key.as_str()).bind(id).execute(&mut *open).await?;
    let query = sqlx::query_scalar(
        "with cancelled as (
             update control.exports set status = 'cancelled', finished_at = clock_timestamp(), replica = null, lease_until = null,
                 expires_at = clock_timestamp() + make_interval(secs => $4)
             where tenant = $1 and key = $2 and id = $3 and status in ('queued', 'running') returning 1
         ),
         forgotten as (
             delete from control.exports
             where tenant = $1 and key = $2 and id = $3 and status not in ('queued', 'running')
                 and clock_timestamp() < expires_at
             returning 1
         )
         select exists (select from cancelled) or exists (select from forgotten)",
    );
    let query = query.bind(tenant.as_str()).bind(key.as_str()).bind(id);
    let is_removed = query.bind(f64::from(life)).fetch_one(&mut *open).await?;
    open.commit().await?;
    Ok(is_removed)
}

/// What the file of a job that succeeded is called where it is downloaded, while it is kept.
pub async fn file(
    conn: &mut PgConnection,
    tenant: &Ulid,
    key: &Ulid,
    id: &Ulid,
    fence: i32,
) -> Result<Option<String>, PgError> {
    let query = sqlx::query_scalar(
        "select name from control.exports where tenant = $1 and key = $2 and id = $3 and fence = $4
             and status = 'succeeded' and clock_timestamp() < expires_at",
    );
    let query = query.bind(tenant.as_str()).bind(key.as_str()).bind(id.as_str()).bind(fence);
    Ok(query.fetch_optional(conn).await?)
}

/// A tenant whose database is gone has none.
pub(super) async fn forget(conn: &mut PgConnection, tenant: &Ulid) -> Result<(), PgError> {
    sqlx::query("delete from control.exports where tenant = $1").bind(tenant.as_str()).execute(conn).await?;
    Ok(())
}

async fn lock(conn: &mut PgConnection) -> Result<(), PgError> {
    sqlx::query("select pg_catalog.pg_advisory_xact_lock($1)").bind(LOCK).execute(conn).await?;
    Ok(())
}
