//! Drops the databases and roles that a script has made, for one that failed halfway.

use sqlx::PgConnection;

use crate::connect::session;
use crate::failure::PgError;

/// A database or a role of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Existing {
    /// Stays the same when it is renamed.
    id: String,
    /// Drops it.
    statement: String,
}

/// All databases, then all roles: roles own what is in databases. As a superuser.
pub async fn existing(conn: &mut PgConnection) -> Result<Vec<Existing>, PgError> {
    let text = "select format('database %s', oid) as id, format('drop database %I with (force)', datname) as statement \
                from pg_database \
                union all \
                select format('role %s', oid), format('drop role %I', rolname) from pg_roles \
                order by id";
    Ok(sqlx::query_as(text).fetch_all(conn).await?)
}

/// Drops each database and role that was not there `before`. As a superuser.
pub async fn drop_others(conn: &mut PgConnection, before: &[Existing]) -> Result<(), PgError> {
    let now = existing(conn).await?;
    for made in now.iter().filter(|one| before.iter().all(|other| other.id != one.id)) {
        session::script(conn, &made.statement).await?;
    }
    Ok(())
}
