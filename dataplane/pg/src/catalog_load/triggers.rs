//! Which writes of a table have triggers that may pass a row over.

use rowgate_sql::catalog::{TableColumns, Way, Ways};
use sqlx::PgConnection;

use super::ident;
use crate::failure::PgError;

#[derive(sqlx::FromRow)]
struct Row {
    schema: String,
    object: String,
    /// `tgtype` of all in one: 4 INSERT, 8 DELETE, 16 UPDATE.
    kinds: i32,
    has_parts: bool,
}

/// Notes it in each of `tables` that is one: BEFORE ROW triggers that fire, of it and of its partitions and children. Those of
/// Concurrency Protection pass no row over.
pub(super) async fn note(conn: &mut PgConnection, tables: &mut [TableColumns]) -> Result<(), PgError> {
    let rows: Vec<Row> = sqlx::query_as(
        "with recursive part as (
             select c.oid as root, c.oid
             from dl.entities e
             join pg_catalog.pg_namespace n on n.nspname = e.definition ->> 'schema'
             join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = e.definition ->> 'object'
                                       and c.relkind in ('r', 'p')
             union
             select p.root, i.inhrelid from part p join pg_catalog.pg_inherits i on i.inhparent = p.oid
         )
         select n.nspname::text as schema, c.relname::text as object,
                pg_catalog.bit_or(t.tgtype::int4) as kinds, c.relkind = 'p' as has_parts
         from part p
         join pg_catalog.pg_trigger t on t.tgrelid = p.oid and t.tgtype & 3 = 3 and t.tgenabled in ('O', 'A')
         join pg_catalog.pg_proc f on f.oid = t.tgfoid
         join pg_catalog.pg_namespace o on o.oid = f.pronamespace and o.nspname <> 'dl'
         join pg_catalog.pg_class c on c.oid = p.root
         join pg_catalog.pg_namespace n on n.oid = c.relnamespace
         group by n.nspname, c.relname, c.relkind
         order by 1, 2",
    )
    .fetch_all(conn)
    .await?;
    for row in rows {
        let (schema, object) = (ident(&row.schema)?, ident(&row.object)?);
        let way = |kinds: i32| if row.kinds & kinds == 0 { Way::Itself } else { Way::Trigger };
        if let Some(table) = tables.iter_mut().find(|it| it.schema == schema && it.object == object) {
            // a row that moves to another partition is deleted from one and inserted into the other
            let update = if row.has_parts { 28 } else { 16 };
            table.ways = Ways { insert: way(4), update: way(update), delete: way(8) };
        }
    }
    Ok(())
}
