//! What stands behind the entities that are called.

use rowgate_sql::catalog::{RoutineInfo, Structures};
use sqlx::PgConnection;
use sqlx::postgres::types::Oid;

use super::ident;
use crate::failure::PgError;
use crate::introspect::declared;

/// Every routine under the schema and name of an entity, by oid, so that one database gives one catalog. Where one name
/// has several, nobody knows which one a call means.
pub(super) async fn routines(
    conn: &mut PgConnection,
    structures: &Structures,
) -> Result<Vec<RoutineInfo>, PgError> {
    let oids: Vec<Oid> = sqlx::query_scalar(
        "select distinct p.oid
         from dl.entities e
         join pg_catalog.pg_namespace n on n.nspname = e.definition ->> 'schema'
         join pg_catalog.pg_proc p on p.pronamespace = n.oid and p.proname = e.definition ->> 'object'
         where e.definition ->> 'kind' = 'Procedure'",
    )
    .fetch_all(&mut *conn)
    .await?;
    if oids.is_empty() {
        return Ok(Vec::new());
    }
    let declared = declared::routines(conn, &oids).await?;
    let info = |declared: &declared::Declared| {
        Ok(RoutineInfo {
            schema: ident(&declared.schema)?,
            object: ident(&declared.name)?,
            routine: declared.callable(&|ty| ty.field(structures)).ok(),
            definer: declared.definer,
        })
    };
    declared.values().map(info).collect()
}
