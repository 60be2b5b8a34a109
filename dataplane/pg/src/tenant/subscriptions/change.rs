//! Changes of subscriptions, each with its line in the audit table.

use rowgate_core::name::Ulid;
use sqlx::postgres::types::Oid;
use sqlx::{Connection as _, PgConnection};

use super::Spec;
use crate::failure::PgError;
use crate::tenant::events::Position;

/// How long a secret that was replaced goes on signing.
pub const OVERLAP_HOURS: i32 = 24;
/// Secrets of a subscription that sign at a time.
pub const MAX_SECRETS: i64 = 5;

/// A secret as it is stored.
#[derive(Debug)]
pub struct NewSecret {
    pub id: Ulid,
    pub sealed: Vec<u8>,
}

/// A subscription that is made.
#[derive(Debug)]
pub struct New<'a> {
    pub id: &'a Ulid,
    pub owner: &'a Ulid,
    pub spec: &'a Spec,
    /// The tables whose events it is sent.
    pub rels: &'a [u32],
    /// It is sent what is behind it.
    pub start: Position,
    pub secret: NewSecret,
}

/// What is noted of an action.
#[derive(Debug, Clone, Copy)]
pub struct Audit<'a> {
    pub key: &'a Ulid,
    pub action: &'static str,
    /// The subscription.
    pub subject: &'a str,
    pub n: Option<i64>,
}

/// Notes an action.
pub async fn audit(conn: &mut PgConnection, of: Audit<'_>) -> Result<(), PgError> {
    let insert = sqlx::query(
        "insert into dl.audit (key_id, surface, action, subject, n) values ($1, 'webhooks', $2, $3, $4)",
    );
    insert.bind(of.key.as_str()).bind(of.action).bind(of.subject).bind(of.n).execute(conn).await?;
    Ok(())
}

/// Makes a subscription, unless the tenant has `most`. False: it has.
pub async fn create(conn: &mut PgConnection, new: &New<'_>, most: u32) -> Result<bool, PgError> {
    let mut open = conn.begin().await?;
    // one at a time, so that the count holds
    sqlx::query("select pg_advisory_xact_lock('dl.subscriptions'::regclass::oid::bigint)")
        .execute(&mut *open)
        .await?;
    let n: i64 = sqlx::query_scalar("select count(*) from dl.subscriptions").fetch_one(&mut *open).await?;
    if i64::from(most) <= n {
        open.rollback().await?;
        return Ok(false);
    }
    let Spec { name, url, tables, ops, payload_query, headers, .. } = new.spec;
    sqlx::query(
        "insert into dl.subscriptions (id, owner_key, origin, name, url, tables, ops, payload_query, headers, max_events, max_bytes,
             max_attempts, initial_seconds, max_seconds, disable_on_gone, suspend, rels, cursor_tick, cursor_seq)
         values ($1, $2, 'api', $3, $4, $5, $6, $7, $8::json, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
    )
    .bind(new.id.as_str())
    .bind(new.owner.as_str())
    .bind(name)
    .bind(url)
    .bind(tables)
    .bind(ops)
    .bind(payload_query)
    .bind(headers)
    .bind(new.spec.max_events)
    .bind(new.spec.max_bytes)
    .bind(new.spec.max_attempts)
    .bind(new.spec.initial_seconds)
    .bind(new.spec.max_seconds)
    .bind(new.spec.disable_on_gone)
    .bind(new.spec.suspend)
    .bind(oids(new.rels))
    .bind(new.start.tick)
    .bind(new.start.seq)
    .execute(&mut *open)
    .await?;
    insert_secret(&mut open, new.id.as_str(), &new.secret).await?;
    let made = Audit { key: new.owner, action: "create", subject: new.id.as_str(), n: None };
    audit(&mut open, made).await?;
    open.commit().await?;
    Ok(true)
}

/// Writes what a caller changed of version `version`. `rels`: the tables, where they or the ops are others; a delivery under way, which
/// is one of the old ones, writes nothing then. `enables`: one that is disabled goes on where it was. False: it is of another
/// version by now.
pub async fn update(
    conn: &mut PgConnection,
    id: &str,
    version: i64,
    spec: &Spec,
    rels: Option<&[u32]>,
    enables: bool,
    of: Audit<'_>,
) -> Result<bool, PgError> {
    let mut open = conn.begin().await?;
    let Spec { name, url, tables, ops, payload_query, headers, .. } = spec;
    let done = sqlx::query(
        "update dl.subscriptions s set version = s.version + 1, name = $3, url = $4, tables = $5, ops = $6, payload_query = $7,
             headers = $8::json, max_events = $9, max_bytes = $10, max_attempts = $11, initial_seconds = $12, max_seconds = $13,
             disable_on_gone = $14, suspend = $15, rels = coalesce($16, s.rels),
             lease = case when $16 is null and not e.enables then s.lease end,
             lease_until = case when $16 is null and not e.enables then s.lease_until end,
             state = case when e.enables then 'enabled' else s.state end,
             reason = case when not e.enables then s.reason end,
             consecutive_dead_letters = case when e.enables then 0 else s.consecutive_dead_letters end,
             batch_id = case when not e.enables then s.batch_id end,
             batch_tick = case when not e.enables then s.batch_tick end,
             batch_seq = case when not e.enables then s.batch_seq end,
             batch_events = case when not e.enables then s.batch_events end,
             attempts = case when e.enables then 0 else s.attempts end,
             next_at = case when not e.enables then s.next_at end,
             batch_limit = case when not e.enables then s.batch_limit end
         from (select o.id, $17 and o.state = 'disabled' as enables from dl.subscriptions o) e
         where s.id = $1 and s.version = $2 and e.id = s.id and s.origin = 'api'",
    )
    .bind(id)
    .bind(version)
    .bind(name)
    .bind(url)
    .bind(tables)
    .bind(ops)
    .bind(payload_query)
    .bind(headers)
    .bind(spec.max_events)
    .bind(spec.max_bytes)
    .bind(spec.max_attempts)
    .bind(spec.initial_seconds)
    .bind(spec.max_seconds)
    .bind(spec.disable_on_gone)
    .bind(spec.suspend)
    .bind(rels.map(oids))
    .bind(enables)
    .execute(&mut *open)
    .await?;
    audit(&mut open, of).await?;
    if done.rows_affected() == 1 {
        open.commit().await?;
        return Ok(true);
    }
    open.rollback().await?;
    Ok(false)
}

/// Drops a subscription that was made through the API, with all that is kept of it. False: there is none.
pub async fn delete(conn: &mut PgConnection, id: &str, of: Audit<'_>) -> Result<bool, PgError> {
    let mut open = conn.begin().await?;
    let done = sqlx::query("delete from dl.subscriptions where id = $1 and origin = 'api'");
    if done.bind(id).execute(&mut *open).await?.rows_affected() == 0 {
        open.rollback().await?;
        return Ok(false);
    }
    audit(&mut open, of).await?;
    open.commit().await?;
    Ok(true)
}

/// What became of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotated {
    Done,
    /// As many secrets sign as may.
    Full,
    /// There is no such subscription any more.
    Gone,
}

/// Adds a secret; those of before sign for [`OVERLAP_HOURS`] more.
pub async fn rotate(
    conn: &mut PgConnection,
    id: &str,
    secret: &NewSecret,
    of: Audit<'_>,
) -> Result<Rotated, PgError> {
    let mut open = conn.begin().await?;
    // a replica that delivers without a pause claims it again, with the secrets of then
    let held = sqlx::query("update dl.subscriptions set version = version + 1 where id = $1").bind(id);
    if held.execute(&mut *open).await?.rows_affected() == 0 {
        open.rollback().await?;
        return Ok(Rotated::Gone);
    }
    sqlx::query(
        "delete from dl.subscription_secrets where subscription = $1 and expires_at <= clock_timestamp()",
    )
    .bind(id)
    .execute(&mut *open)
    .await?;
    let n = sqlx::query(
        "update dl.subscription_secrets set expires_at =
             least(coalesce(expires_at, 'infinity'), clock_timestamp() + $2 * interval '1 hour')
         where subscription = $1",
    );
    let n = n.bind(id).bind(OVERLAP_HOURS).execute(&mut *open).await?.rows_affected();
    if i64::try_from(n).is_ok_and(|n| MAX_SECRETS <= n) {
        open.rollback().await?;
        return Ok(Rotated::Full);
    }
    insert_secret(&mut open, id, secret).await?;
    audit(&mut open, of).await?;
    open.commit().await?;
    Ok(Rotated::Done)
}

/// Asks that dead letters be sent again: the one of this id, or all. How many are asked for now.
pub async fn redrive(
    conn: &mut PgConnection,
    id: &str,
    one: Option<&str>,
    of: Audit<'_>,
) -> Result<u64, PgError> {
    let mut open = conn.begin().await?;
    let done = sqlx::query(
        "update dl.dead_letters set redrive_at = clock_timestamp()
         where subscription = $1 and ($2::text is null or id = $2) and delivered_at is null and redrive_at is null",
    );
    let n = done.bind(id).bind(one).execute(&mut *open).await?.rows_affected();
    audit(&mut open, Audit { n: i64::try_from(n).ok(), ..of }).await?;
    open.commit().await?;
    Ok(n)
}

async fn insert_secret(
    conn: &mut PgConnection,
    subscription: &str,
    secret: &NewSecret,
) -> Result<(), PgError> {
    let insert = sqlx::query(
        "insert into dl.subscription_secrets (id, subscription, sealed, created_at) values ($1, $2, $3, clock_timestamp())",
    );
    insert.bind(secret.id.as_str()).bind(subscription).bind(&secret.sealed).execute(conn).await?;
    Ok(())
}

fn oids(rels: &[u32]) -> Vec<Oid> {
    rels.iter().map(|rel| Oid(*rel)).collect()
}
