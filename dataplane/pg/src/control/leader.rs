//! Who reconciles: one at a time, and whoever took over last. As the operator on the control database.

use sqlx::{Connection as _, PgConnection, Postgres, Transaction};

use crate::failure::PgError;

/// What the fences raise to a reconciler that another one has replaced. Everybody's code can raise it: see [`believed`].
pub(crate) const REPLACED: &str = "RG001";

/// Takes over: whoever reconciled before fails at the fence from now on. Waits for the transaction in which that one is.
pub async fn claim(conn: &mut PgConnection) -> Result<i64, PgError> {
    let claim = sqlx::query_scalar("update control.leader set epoch = epoch + 1 returning epoch");
    Ok(claim.fetch_one(conn).await?)
}

/// Goes beyond every epoch that was given since the backup from which the control database was restored: other servers hold them, and would
/// take the next reconciler for one that was replaced.
pub(super) async fn leap(conn: &mut PgConnection) -> Result<(), PgError> {
    sqlx::query("update control.leader set epoch = epoch + 1000000").execute(conn).await?;
    Ok(())
}

/// Copies the epoch `lead` into the cluster of the connection, beside the control database's: a reconciler that was replaced fails at
/// the fence there, too. Waits as [`claim`]. [`PgError::Replaced`] when a newer one has been here.
pub async fn copy(conn: &mut PgConnection, lead: i64) -> Result<(), PgError> {
    let copied = sqlx::query("update control.leader set epoch = $1 where epoch < $1");
    copied.bind(lead).execute(&mut *conn).await?;
    ask(conn, lead).await
}

/// Who took over last, and what else is asked with it.
#[derive(Debug, Clone, Copy, PartialEq, sqlx::FromRow)]
pub struct Look {
    pub epoch: i64,
    /// How full the server's queue of notifications is, 0 to 1: all databases share it.
    pub queue: f64,
}

pub async fn look(conn: &mut PgConnection) -> Result<Look, PgError> {
    let text = "select epoch, pg_catalog.pg_notification_queue_usage() as queue from control.leader";
    Ok(sqlx::query_as(text).fetch_one(conn).await?)
}

/// [`PgError::Replaced`] when somebody has taken over since `epoch`.
pub async fn ask(conn: &mut PgConnection, epoch: i64) -> Result<(), PgError> {
    match epoch < look(conn).await?.epoch {
        true => Err(PgError::Replaced),
        false => Ok(()),
    }
}

/// What `error` is when the fence of the control database gave it. Nowhere else, since only there no tenant's code runs.
#[must_use]
pub fn believed(error: PgError) -> PgError {
    if error.code() == Some(REPLACED) { PgError::Replaced } else { error }
}

/// A transaction in which nobody else can take over. [`PgError::Replaced`] when somebody has. What cannot stand in a transaction,
/// or is done by another login, is done while this one is open.
pub async fn fence(conn: &mut PgConnection, epoch: i64) -> Result<Transaction<'_, Postgres>, PgError> {
    let mut open = conn.begin_with("begin isolation level read committed, read write").await?;
    let asked = sqlx::query("select control.fence($1)").bind(epoch).execute(&mut *open).await;
    asked.map_err(|error| believed(error.into()))?;
    // whoever is stopped here holds the fence, and nobody else could take over
    sqlx::query("set local idle_in_transaction_session_timeout = '60s'").execute(&mut *open).await?;
    Ok(open)
}
