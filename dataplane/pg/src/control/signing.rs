//! The generations of the signing key in the control database. As `rowgate_dataplane`.

use rowgate_core::signing::{Generation, KEEP, Schedule};
use sqlx::PgConnection;

use crate::failure::PgError;

/// What a rotation that was asked for came to. Times are RFC 3339, by the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// True: it begins now. False: one is under way already, and this one did not begin.
    pub begun: bool,
    /// The newest generation.
    pub generation: i32,
    /// When it signs, and when the one before it verifies no more.
    pub signs_from: String,
    pub ends: String,
}

/// Every generation, and the database's clock.
pub async fn schedule(conn: &mut PgConnection) -> Result<Schedule, PgError> {
    let rows: Vec<(i32, i64, i64)> = sqlx::query_as(
        "select generation, floor(extract(epoch from signs_from))::int8, floor(extract(epoch from clock_timestamp()))::int8 \
         from control.signing_keys",
    )
    .fetch_all(conn)
    .await?;
    let now = rows.first().map_or(0, |(_, _, now)| *now);
    let generation = |(number, signs_from, _): (i32, i64, i64)| {
        let number = u32::try_from(number).map_err(|_| PgError::unexpected("a generation below 0"))?;
        Ok(Generation { number, signs_from })
    };
    let generations = rows.into_iter().map(generation).collect::<Result<_, PgError>>()?;
    Schedule::new(generations, now)
        .ok_or_else(|| PgError::unexpected("control.signing_keys has no key that signs now"))
}

/// Adds the next generation, unless tokens of two are about. Wake the replicas afterwards.
pub async fn rotate(conn: &mut PgConnection) -> Result<Rotation, PgError> {
    let insert = sqlx::query(
        "insert into control.signing_keys (generation) select max(generation) + 1 from control.signing_keys \
         having max(signs_from) + $1 * interval '1 second' <= now() on conflict do nothing",
    );
    let begun = insert.bind(KEEP).execute(&mut *conn).await?.rows_affected() == 1;
    let (generation, signs_from, ends) = sqlx::query_as(
        "select generation, to_char(signs_from at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), \
                to_char((signs_from + $1 * interval '1 second') at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') \
         from control.signing_keys order by generation desc limit 1",
    )
    .bind(KEEP)
    .fetch_one(conn)
    .await?;
    Ok(Rotation { begun, generation, signs_from, ends })
}
