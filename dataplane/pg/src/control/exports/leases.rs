//! How replicas run export jobs. A job is claimed under a lease and a fence that grows with each claim; what becomes of it is written
//! only by who holds the newest fence. Leases go by the clock of the database.

use rowgate_core::name::Ulid;
use sqlx::{Connection as _, PgConnection};

use super::lock;
use crate::failure::PgError;

/// A job that is this replica's to run.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Claimed {
    pub id: String,
    pub tenant: String,
    pub key: String,
    /// JSON.
    pub request: String,
    pub fence: i32,
    /// This one among them.
    pub attempts: i32,
}

/// A tenant whose jobs may be claimed, and how many of them run at a time, of all replicas together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimable {
    pub tenant: String,
    pub running: i32,
    pub running_per_key: i32,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub id: String,
    pub fence: i32,
    pub rows: i64,
    pub bytes: i64,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Succeeded { rows: i64, bytes: i64, capped: bool },
    Failed { code: String, message: String },
}

/// The oldest job of these tenants that may run now, whose lease then lasts for so many seconds. One whose lease ran out is
/// claimed again.
pub async fn claim(
    conn: &mut PgConnection,
    replica: &Ulid,
    tenants: &[Claimable],
    seconds: i32,
) -> Result<Option<Claimed>, PgError> {
    let mut open = conn.begin().await?;
    lock(&mut open).await?;
    let claim = sqlx::query_as(
        "update control.exports set status = 'running', fence = fence + 1, attempts = attempts + 1, replica = $1, rows = 0, bytes = 0,
             lease_until = clock_timestamp() + make_interval(secs => $3), started_at = clock_timestamp()
         where id = (
             select c.id from control.exports c
             join unnest($2::text[], $4::integer[], $5::integer[]) t (id, per_key, per_tenant) on t.id = c.tenant
             where (
                     c.status = 'queued' and c.due_at <= clock_timestamp()
                     or c.status = 'running' and c.lease_until < clock_timestamp()
                 )
                 and t.per_key > (
                     select count(*) from control.exports r where r.tenant = c.tenant and r.key = c.key and r.id <> c.id
                         and r.status = 'running' and clock_timestamp() <= r.lease_until
                 )
                 and t.per_tenant > (
                     select count(*) from control.exports r where r.tenant = c.tenant and r.id <> c.id
                         and r.status = 'running' and clock_timestamp() <= r.lease_until
                 )
             order by c.created_at, c.id limit 1
         )
         returning id, tenant, key, request::text as request, fence, attempts",
    );
    let ids: Vec<&str> = tenants.iter().map(|it| it.tenant.as_str()).collect();
    let numbers = |of: fn(&Claimable) -> i32| tenants.iter().map(of).collect::<Vec<_>>();
    let claim = claim.bind(replica.as_str()).bind(ids).bind(f64::from(seconds));
    let claim = claim.bind(numbers(|it| it.running_per_key)).bind(numbers(|it| it.running));
    let claimed = claim.fetch_optional(&mut *open).await?;
    open.commit().await?;
    Ok(claimed)
}

/// Prolongs leases and notes how far their jobs are. Gives the ids of those that are still this replica's.
pub async fn renew(
    conn: &mut PgConnection,
    replica: &Ulid,
    jobs: &[Progress],
    seconds: i32,
) -> Result<Vec<String>, PgError> {
    let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
    let numbers = |of: fn(&Progress) -> i64| jobs.iter().map(of).collect::<Vec<_>>();
    let fences: Vec<i32> = jobs.iter().map(|job| job.fence).collect();
    let renew = sqlx::query_scalar(
        "update control.exports e set rows = h.rows, bytes = h.bytes, lease_until = clock_timestamp() + make_interval(secs => $6)
         from unnest($2::text[], $3::integer[], $4::bigint[], $5::bigint[]) h (id, fence, rows, bytes)
         where e.id = h.id and e.fence = h.fence and e.replica = $1 and e.status = 'running'
         returning e.id",
    );
    let renew = renew.bind(replica.as_str()).bind(ids).bind(fences);
    let renew = renew.bind(numbers(|job| job.rows)).bind(numbers(|job| job.bytes));
    Ok(renew.bind(f64::from(seconds)).fetch_all(conn).await?)
}

/// Notes what is known once a job has begun. False: it is another's by now.
pub async fn begun(
    conn: &mut PgConnection,
    id: &str,
    fence: i32,
    estimate: Option<i64>,
    event_cursor: Option<&str>,
) -> Result<bool, PgError> {
    let begun = sqlx::query(
        "update control.exports set estimate = $3, event_cursor = $4 where id = $1 and fence = $2 and status = 'running'",
    );
    let begun = begun.bind(id).bind(fence).bind(estimate).bind(event_cursor);
    Ok(begun.execute(conn).await?.rows_affected() == 1)
}

/// Writes how a job ended; it is listed for `life` seconds more. False: it is another's by now, or was cancelled.
pub async fn end(
    conn: &mut PgConnection,
    id: &str,
    fence: i32,
    ended: &Ended,
    life: i32,
) -> Result<bool, PgError> {
    let (status, rows, bytes, capped, code, message) = match ended {
        Ended::Succeeded { rows, bytes, capped } => ("succeeded", *rows, *bytes, *capped, None, None),
        Ended::Failed { code, message } => ("failed", 0, 0, false, Some(code), Some(message)),
    };
    let end = sqlx::query(
        "update control.exports set status = $3, rows = $4, bytes = $5, capped = $6, error_code = $7, error_message = $8,
             finished_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => $9), replica = null,
             lease_until = null
         where id = $1 and fence = $2 and status = 'running'",
    );
    let end = end.bind(id).bind(fence).bind(status).bind(rows).bind(bytes).bind(capped);
    let end = end.bind(code).bind(message).bind(f64::from(life));
    Ok(end.execute(conn).await?.rows_affected() == 1)
}

/// Gives a job back to the queue, to be run again in so many seconds. `counts`: the attempt was one. False: as of [`end`].
pub async fn release(
    conn: &mut PgConnection,
    id: &str,
    fence: i32,
    seconds: i32,
    counts: bool,
) -> Result<bool, PgError> {
    let release = sqlx::query(
        "update control.exports set status = 'queued', due_at = clock_timestamp() + make_interval(secs => $3),
             attempts = attempts - (case when $4 then 0 else 1 end), replica = null, lease_until = null, rows = 0, bytes = 0,
             started_at = null
         where id = $1 and fence = $2 and status = 'running'",
    );
    let release = release.bind(id).bind(fence).bind(f64::from(seconds)).bind(counts);
    Ok(release.execute(conn).await?.rows_affected() == 1)
}

/// Forgets the jobs that are kept no longer.
pub async fn forget_expired(conn: &mut PgConnection) -> Result<(), PgError> {
    sqlx::query("delete from control.exports where expires_at <= clock_timestamp()").execute(conn).await?;
    Ok(())
}

/// Which keys have jobs, by tenant.
pub async fn keys(conn: &mut PgConnection) -> Result<Vec<(String, String)>, PgError> {
    let query = "select distinct tenant, key from control.exports order by tenant, key";
    Ok(sqlx::query_as(query).fetch_all(conn).await?)
}

/// Forgets all jobs of keys that are dead. Gives how many there were.
pub async fn forget_keys(conn: &mut PgConnection, tenant: &str, keys: &[String]) -> Result<u64, PgError> {
    let query = sqlx::query("delete from control.exports where tenant = $1 and key = any($2)");
    Ok(query.bind(tenant).bind(keys).execute(conn).await?.rows_affected())
}

/// Ids and fences of the jobs that have a file (true), or may get one.
pub async fn with_files(conn: &mut PgConnection) -> Result<Vec<(String, i32, bool)>, PgError> {
    let query = "select id, fence, status = 'succeeded' from control.exports where status in ('running', 'succeeded')";
    Ok(sqlx::query_as(query).fetch_all(conn).await?)
}

/// Fails jobs that succeeded and whose files are gone.
pub async fn lose(
    conn: &mut PgConnection,
    jobs: &[String],
    code: &str,
    message: &str,
) -> Result<(), PgError> {
    let lose = sqlx::query(
        "update control.exports set status = 'failed', error_code = $2, error_message = $3 where id = any($1) and status = 'succeeded'",
    );
    lose.bind(jobs).bind(code).bind(message).execute(conn).await?;
    Ok(())
}
