//! What a server has counted of writes: where the numbers are as they were, no catalog holds anything else.

use std::collections::HashMap;

use sqlx::PgConnection;

use crate::failure::PgError;

/// Counters of one server. A session adds to them when it is idle, at the latest 10 s after that. PostgreSQL forgets them when it crashes,
/// and says when.
#[derive(Debug, Default)]
pub struct Writes {
    /// Of the catalogs that all databases share, such as roles and their memberships; and when the server started and read its files.
    pub shared: Counted,
    /// Of each database, by name.
    pub databases: HashMap<String, Counted>,
}

/// Rows that were inserted, updated and deleted, in catalogs and in tables; and since when, and of what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    rows: i64,
    of: String,
}

/// As any role. Nothing where the server does not count.
pub async fn writes(conn: &mut PgConnection) -> Result<Writes, PgError> {
    let text = "select datname::text, tup_inserted + tup_updated + tup_deleted, \
                    concat_ws('/', datid, stats_reset, pg_catalog.pg_postmaster_start_time(), \
                        (select stats_reset from pg_catalog.pg_stat_bgwriter), \
                        case when datid = 0 then pg_catalog.pg_conf_load_time() end) \
                from pg_catalog.pg_stat_database where pg_catalog.current_setting('track_counts')::boolean";
    let rows: Vec<(Option<String>, i64, String)> = sqlx::query_as(text).fetch_all(conn).await?;
    let mut writes = Writes::default();
    for (database, rows, of) in rows {
        let counted = Counted { rows, of };
        match database {
            Some(database) => drop(writes.databases.insert(database, counted)),
            None => writes.shared = counted,
        }
    }
    Ok(writes)
}
