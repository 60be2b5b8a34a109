//! Who reconciles: one at a time, and whoever took over last. As the operator on the control database.

use sqlx::{Connection as _, PgConnection, Postgres, Transaction};

use crate::failure::PgError;

/// What a reconciler is told that another one has replaced: its SQLSTATE, in every database.
pub const REPLACED: &str = "RG001";

/// Takes over: whoever reconciled before fails at the fence from now on. Waits for the transaction in which that one is.
pub async fn claim(conn: &mut PgConnection) -> Result<i64, PgError> {
    let claim = sqlx::query_scalar("update control.leader set epoch = epoch + 1 returning epoch");
    Ok(claim.fetch_one(conn).await?)
}

/// The epoch of whoever took over last.
pub async fn epoch(conn: &mut PgConnection) -> Result<i64, PgError> {
    Ok(sqlx::query_scalar("select epoch from control.leader").fetch_one(conn).await?)
}

/// A transaction in which nobody else can take over. [`REPLACED`] when somebody has. What cannot stand in a transaction,
/// or is done by another login, is done while this one is open.
pub async fn fence(conn: &mut PgConnection, epoch: i64) -> Result<Transaction<'_, Postgres>, PgError> {
    let mut open = conn.begin_with("begin isolation level read committed, read write").await?;
    sqlx::query("select control.fence($1)").bind(epoch).execute(&mut *open).await?;
    // whoever is stopped here holds the fence, and nobody else could take over
    sqlx::query("set local idle_in_transaction_session_timeout = '60s'").execute(&mut *open).await?;
    Ok(open)
}
