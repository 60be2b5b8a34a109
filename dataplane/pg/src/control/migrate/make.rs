//! Schema `dl` of a database that has none.

use sqlx::{Connection as _, PgConnection, Postgres, Transaction};

use super::{TENANT, TENANT_RECORD, lock, run};
use crate::connect::session;
use crate::failure::PgError;

/// Closes a database before the bootstrap script makes anything in it, as the owner of its tables: only roles that the plan lets in may connect, and
/// PUBLIC may call nothing that is made. One that was there before keeps what PUBLIC has in it; there sessions begin as the application's role.
///
/// # Errors
/// PostgreSQL's.
pub async fn close_database(conn: &mut PgConnection) -> Result<(), PgError> {
    session::script(conn, CLOSE_DATABASE).await
}

/// Makes schema `dl` as `t<id>_dl`, which has been lent the rights of the owner of the database, and in which no code of the tenant runs.
/// The functions that capture rows are not made: they are the owner's. All or nothing.
///
/// # Errors
/// PostgreSQL's; 42P06 where the schema is there by now, 55P03 where another session holds the lock of migrations.
pub async fn make(conn: &mut PgConnection) -> Result<(), PgError> {
    let mut open = begin_lent(conn).await?;
    run(&mut open, TENANT, 0, TENANT_RECORD).await?;
    session::script(&mut open, "drop function dl.capture(), dl.capture_row()").await?;
    session::script(&mut open, REVOKE_FROM_PUBLIC).await?;
    Ok(open.commit().await?)
}

/// Begins what is done while the rights of the owner are lent: no lock is waited for long.
pub(super) async fn begin_lent(conn: &mut PgConnection) -> Result<Transaction<'_, Postgres>, PgError> {
    let mut open = conn.begin_with("begin isolation level read committed, read write").await?;
    session::script(&mut open, "set local lock_timeout = '500ms'; set local client_min_messages = warning")
        .await?;
    lock(&mut open).await?;
    Ok(open)
}

const CLOSE_DATABASE: &str = "
do $$
begin
    if session_user = (select pg_catalog.pg_get_userbyid(datdba) from pg_catalog.pg_database
                       where datname = pg_catalog.current_database()) then
        execute pg_catalog.format('revoke connect, temporary on database %I from public', pg_catalog.current_database());
    end if;
    if session_user = current_user then
        alter default privileges revoke execute on routines from public;
    end if;
end
$$";

/// The plan gives what data planes need.
pub(super) const REVOKE_FROM_PUBLIC: &str = "
revoke all on schema dl from public;
revoke all on all tables in schema dl from public;
revoke all on all sequences in schema dl from public;
revoke all on all routines in schema dl from public";
