//! PostgreSQL clusters that became other ones, by `pg_upgrade` or a restore. `rebind` writes a row; whoever opens the server next takes it up.

use sqlx::PgConnection;

use crate::failure::PgError;

/// By system identifiers: what was known as `from` is the cluster `to` now.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Rebind {
    #[sqlx(rename = "from_cluster")]
    pub from: String,
    #[sqlx(rename = "to_cluster")]
    pub to: String,
}

impl Rebind {
    /// Whether a cluster whose marker says `stored` may be `actual`.
    #[must_use]
    pub fn allows(&self, stored: &str, actual: &str) -> bool {
        self.from == stored && self.to == actual
    }
}

/// What was said within a day and not taken up. As the operator. Nothing in a control database that an earlier version left.
pub async fn list(control: &mut PgConnection) -> Result<Vec<Rebind>, PgError> {
    let there = sqlx::query_scalar("select to_regclass('control.rebinds') is not null");
    if !there.fetch_one(&mut *control).await? {
        return Ok(Vec::new());
    }
    let text = "select from_cluster, to_cluster from control.rebinds where now() - interval '1 day' < said_at order by 1";
    let rows = sqlx::query_as(text);
    Ok(rows.fetch_all(control).await?)
}

/// Says it, in place of what was said of `from` before. As the operator.
pub async fn say(control: &mut PgConnection, rebind: &Rebind) -> Result<(), PgError> {
    let text = "insert into control.rebinds (from_cluster, to_cluster) values ($1, $2) \
                on conflict (from_cluster) do update set to_cluster = excluded.to_cluster, said_at = now()";
    sqlx::query(text).bind(&rebind.from).bind(&rebind.to).execute(control).await?;
    Ok(())
}

/// Databases of tenants in `from` whose names tenants in `to` have; `None`: the cluster of the control database.
pub async fn taken(
    control: &mut PgConnection,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<Vec<String>, PgError> {
    let text = "select a.database from control.tenants a join control.tenants b using (database) \
                where a.cluster is not distinct from $1 and b.cluster is not distinct from $2 and a.id <> b.id order by 1";
    Ok(sqlx::query_scalar(text).bind(from).bind(to).fetch_all(control).await?)
}

/// The marker beside the connection says the other cluster from now on.
pub(super) async fn take_up_marker(control: &mut PgConnection, rebind: &Rebind) -> Result<(), PgError> {
    sqlx::query("update control.installation set system_identifier = $2 where system_identifier = $1")
        .bind(&rebind.from)
        .bind(&rebind.to)
        .execute(&mut *control)
        .await?;
    forget(control, rebind).await?;
    Ok(())
}

/// The tenants of `from` are in the cluster `to`, whose row is there; `None`: in that of the control database. Returns how many. 23505 where
/// the name of a database is taken.
pub async fn take_up(control: &mut PgConnection, rebind: &Rebind, to: Option<&str>) -> Result<u64, PgError> {
    if !forget(control, rebind).await? {
        return Err(PgError::unexpected("what `rebind` said was changed meanwhile"));
    }
    let moved = sqlx::query("update control.tenants set cluster = $2 where cluster = $1");
    let n_moved = moved.bind(&rebind.from).bind(to).execute(&mut *control).await?.rows_affected();
    sqlx::query("delete from control.servers where system_identifier = $1")
        .bind(&rebind.from)
        .execute(&mut *control)
        .await?;
    Ok(n_moved)
}

/// Whether it was still said.
async fn forget(control: &mut PgConnection, rebind: &Rebind) -> Result<bool, PgError> {
    let said = sqlx::query("delete from control.rebinds where from_cluster = $1 and to_cluster = $2");
    let deleted = said.bind(&rebind.from).bind(&rebind.to).execute(control).await?;
    Ok(deleted.rows_affected() == 1)
}
