//! Databases that were kept when their Tenants were deleted, for platform teams: which there are, whom they are for, and that
//! one is about to be dropped.

use rowgate_core::name::Ulid;
use sqlx::{PgConnection, Row as _, postgres::PgRow};

use crate::control::tenants::{Record, record};
use crate::failure::PgError;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retained {
    pub record: Record,
    /// Since when (RFC 3339, whole seconds); `None`: it was retained before this was written down.
    pub since: Option<String>,
}

/// All of them, by slug. As `rowgate_dataplane` or the operator.
pub async fn list(conn: &mut PgConnection) -> Result<Vec<Retained>, PgError> {
    let text = record!(
        "select to_char(retained_at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as since,",
        "from control.tenants where phase = 'retained' order by slug"
    );
    Ok(sqlx::query_as(text).fetch_all(conn).await?)
}

/// Hands a retained database to the Tenant `namespace`/`name`, and to no other; handed to the one that it was retained from it
/// is for that namespace again. `None`: nothing with this id is retained, or it is being dropped. As the operator.
///
/// The object that it was retained from, should it still be there or come back, is not the row's any more: without it neither
/// its pass nor its end touches the database.
pub async fn hand_over(
    conn: &mut PgConnection,
    id: &Ulid,
    namespace: &str,
    name: &str,
) -> Result<Option<Record>, PgError> {
    let text = record!(
        "update control.tenants set uid = 'handed-over-' || id, \
           handed_namespace = case when (namespace, name) is distinct from ($2, $3) then $2 end, \
           handed_name = case when (namespace, name) is distinct from ($2, $3) then $3 end \
         where id = $1 and phase = 'retained' and not dropping returning",
        ""
    );
    let query = sqlx::query_as(text).bind(id.as_str()).bind(namespace).bind(name);
    Ok(query.fetch_optional(conn).await?)
}

/// From its COMMIT on nobody takes up the database of `record`, and it may be dropped. False: somebody else has it by now. As
/// the operator.
pub async fn begin_drop(conn: &mut PgConnection, record: &Record) -> Result<bool, PgError> {
    let text = "update control.tenants set dropping = true where id = $1 and uid = $2 and phase = 'retained'";
    let begun = sqlx::query(text).bind(record.id.as_str()).bind(&record.uid).execute(conn).await?;
    Ok(begun.rows_affected() == 1)
}

/// How large the database of the connection is, as PostgreSQL writes it, such as `7540 kB`.
pub async fn size(conn: &mut PgConnection) -> Result<String, PgError> {
    let size = sqlx::query_scalar(
        "select pg_catalog.pg_size_pretty(pg_catalog.pg_database_size(pg_catalog.current_database()))",
    );
    Ok(size.fetch_one(conn).await?)
}

impl<'r> sqlx::FromRow<'r, PgRow> for Retained {
    fn from_row(row: &'r PgRow) -> Result<Retained, sqlx::Error> {
        Ok(Retained { record: Record::from_row(row)?, since: row.try_get("since")? })
    }
}
