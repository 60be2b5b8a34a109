//! The scripts that a tenant's owner gave: running one, and which of them ran.

use rowgate_sql::ddl::records;
use rowgate_sql::text::Sql;
use sqlx::{Connection as _, PgConnection};

use crate::connect::session;
use crate::control::tenants::{fence, fenced};
use crate::failure::PgError;
use crate::tenant::read_limits::{of, within};
use crate::tenant::staging;

/// A script that ran, or counts as one that did.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Ran {
    /// Of its ConfigMap, when it ran.
    pub name: String,
    /// Its key there.
    pub key: String,
    /// Of its text, in hexadecimal digits.
    pub sha256: String,
}

/// EXECUTE takes a whole script, and refuses COMMIT and ROLLBACK, after which half of it would stand. What the script raises,
/// now or by what it deferred, may be of any size, and is cut before it is sent.
const SCRIPT: &str = "do $$
    begin
        execute pg_catalog.current_setting('rowgate.bootstrap');
        set constraints all immediate;
    exception when others or assert_failure or query_canceled then
        raise exception using errcode = sqlstate, message = pg_catalog.left(sqlerrm, 1000);
    end $$";

/// True once the only script, or the first, has run, or `false` before.
pub async fn bootstrapped(conn: &mut PgConnection) -> Result<bool, PgError> {
    let row = sqlx::query_scalar("select bootstrapped_at is not null from dl.state");
    within("dl.state", async { Ok(row.fetch_one(conn).await?) }).await.map_err(of("dl.state"))
}

/// The scripts of a list that ran, in its order. As the owner of schema `dl`.
pub async fn ran(conn: &mut PgConnection) -> Result<Vec<Ran>, PgError> {
    let rows = sqlx::query_as("select name, key, sha256 from dl.scripts order by number");
    within("dl.scripts", async { Ok(rows.fetch_all(conn).await?) }).await.map_err(of("dl.scripts"))
}

/// What is written of the script at the place `number` of a list, from 1 on.
#[must_use]
pub fn record(number: usize, ran: &Ran) -> Sql {
    records::script_ran(number, &ran.name, &ran.key, &ran.sha256)
}

/// Runs a script of the tenant's owner, once: the script and `noted`, the statements that note that it ran, stand or fall together. What
/// it set for the session stays, so the connection is to be closed. `of_records` is of `t<id>_dl`, `token` 32 random bytes.
pub async fn run(
    conn: &mut PgConnection,
    of_records: &mut PgConnection,
    script: &str,
    noted: Vec<Sql>,
    epoch: i64,
    token: [u8; 32],
) -> Result<(), PgError> {
    let noted = staging::stage(of_records, noted, &mut || token).await?;
    let mut open = conn.begin().await?;
    fence(&mut open, epoch).await?;
    sqlx::query("select pg_catalog.set_config('rowgate.bootstrap', $1, true)")
        .bind(script)
        .execute(&mut *open)
        .await?;
    session::script(&mut open, SCRIPT).await?;
    for step in noted {
        session::execute(&mut open, &step.sql).await?;
    }
    Ok(open.commit().await?)
}

/// Notes that the first script of a list ran before, as the only one. As the owner of schema `dl`.
pub async fn count_first(conn: &mut PgConnection, first: &Ran, epoch: i64) -> Result<(), PgError> {
    let noted = session::transaction(conn, &[records::fence(epoch), record(1, first)]).await;
    noted.map_err(|failed| fenced(failed.error))
}
