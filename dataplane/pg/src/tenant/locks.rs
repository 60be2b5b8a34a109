//! Who holds a tenant's tables while we wait for them.

use std::fmt;

use sqlx::PgConnection;

use crate::failure::PgError;

/// `lock_not_available`: we have waited for a lock for as long as we let others wait behind us.
pub const NOT_AVAILABLE: &str = "55P03";

/// A relation and a session whose transaction holds it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Held {
    pub schema: String,
    pub relation: String,
    /// `None`: a prepared transaction (`pg_prepared_xacts`).
    pub pid: Option<i32>,
    /// Nobody else may even look at it.
    pub exclusively: bool,
}

/// What other sessions hold in this database, but for PostgreSQL's own relations and ours, by name. From `pg_locks`, which
/// says it to anybody; the names of relations are read without a lock.
pub async fn held(conn: &mut PgConnection) -> Result<Vec<Held>, PgError> {
    let rows = sqlx::query_as(
        "select n.nspname::text as schema, c.relname::text as relation, l.pid,
                pg_catalog.bool_or(l.mode = 'AccessExclusiveLock') as exclusively
         from pg_catalog.pg_locks l
         join pg_catalog.pg_class c on c.oid = l.relation and c.relkind in ('r', 'p', 'v', 'm', 'f')
         join pg_catalog.pg_namespace n on n.oid = c.relnamespace
         where l.granted and l.pid is distinct from pg_catalog.pg_backend_pid()
           and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
           and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast', 'dl')
         group by n.nspname, c.relname, l.pid
         order by 1, 2, 3",
    );
    Ok(rows.fetch_all(conn).await?)
}

/// Those of `held` in a few words, for a person who is to end them.
#[must_use]
pub fn sentence(held: &[Held]) -> String {
    const NAMED: usize = 3;
    let mut named: Vec<String> = held.iter().take(NAMED).map(Held::to_string).collect();
    if NAMED < held.len() {
        named.push(format!("{} more", held.len() - NAMED));
    }
    named.join(", ")
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} by ", self.schema, self.relation)?;
        match self.pid {
            Some(pid) => write!(f, "session {pid}"),
            None => write!(f, "a prepared transaction"),
        }
    }
}
