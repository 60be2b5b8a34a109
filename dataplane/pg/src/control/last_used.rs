//! When keys were last used, in the control database.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use rowgate_core::name::Ulid;
use sqlx::PgConnection;

use crate::failure::PgError;

/// Uses in one statement.
const BATCH: usize = 1_000;

/// One use: tenant, key, and how long ago it was.
pub type KeyUse = (Ulid, Ulid, Duration);

/// Writes uses down, by the database's clock. A time never moves backwards, whichever replica comes last. As
/// `rowgate_dataplane`.
pub async fn note(conn: &mut PgConnection, mut uses: Vec<KeyUse>) -> Result<(), PgError> {
    // in one order, so that two replicas never wait for each other in a circle
    uses.sort();
    for batch in uses.chunks(BATCH) {
        let tenants: Vec<&str> = batch.iter().map(|(tenant, ..)| tenant.as_str()).collect();
        let keys: Vec<&str> = batch.iter().map(|(_, key, _)| key.as_str()).collect();
        let age = |age: &Duration| i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let ages: Vec<i64> = batch.iter().map(|(.., ago)| age(ago)).collect();
        let insert = sqlx::query(
            "insert into control.key_uses as known (tenant, key, used_at) \
             select tenant, key, clock_timestamp() - age * interval '1 millisecond' \
             from unnest($1::text[], $2::text[], $3::int8[]) as new (tenant, key, age) \
             on conflict (tenant, key) do update set used_at = excluded.used_at where known.used_at < excluded.used_at",
        );
        insert.bind(&tenants).bind(&keys).bind(&ages).execute(&mut *conn).await?;
    }
    Ok(())
}

/// The tenants of which a key was used within this time.
pub async fn used_within(conn: &mut PgConnection, time: Duration) -> Result<BTreeSet<Ulid>, PgError> {
    let text =
        "select distinct tenant from control.key_uses where now() - $1 * interval '1 second' < used_at";
    let rows: Vec<String> = sqlx::query_scalar(text).bind(time.as_secs_f64()).fetch_all(conn).await?;
    Ok(rows.into_iter().filter_map(|id| id.parse().ok()).collect())
}

/// When each key of a tenant was last used, as far as that is known.
pub async fn of(conn: &mut PgConnection, tenant: &Ulid) -> Result<BTreeMap<Ulid, Timestamp>, PgError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "select key, (extract(epoch from used_at) * 1000000)::int8 from control.key_uses where tenant = $1",
    )
    .bind(tenant.as_str())
    .fetch_all(conn)
    .await?;
    let read = |(key, at): (String, i64)| Some((key.parse().ok()?, Timestamp::from_microsecond(at).ok()?));
    Ok(rows.into_iter().filter_map(read).collect())
}
