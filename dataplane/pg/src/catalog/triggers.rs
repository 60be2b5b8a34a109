//! Which writes of a table have triggers that may pass a row over.

use rowgate_sql::catalog::{WriteMethod, WriteSupport};
use sqlx::PgConnection;
use sqlx::postgres::types::Oid;

use super::tables::Tables;
use crate::failure::PgError;

#[derive(sqlx::FromRow)]
struct Row {
    relation: Oid,
    /// `tgtype` of all in one: 4 INSERT, 8 DELETE, 16 UPDATE.
    kinds: i32,
    has_parts: bool,
}

/// Notes it in each of `tables` that is one: BEFORE ROW triggers that fire, of it and of its partitions and children. Those of
/// Concurrency Protection pass no row over.
pub(super) async fn note(conn: &mut PgConnection, tables: &mut Tables) -> Result<(), PgError> {
    let rows: Vec<Row> = sqlx::query_as(
        "with recursive part as (
             select c.oid as root, c.oid from pg_catalog.pg_class c where c.oid = any ($1) and c.relkind in ('r', 'p')
             union
             select p.root, i.inhrelid from part p join pg_catalog.pg_inherits i on i.inhparent = p.oid
         )
         select c.oid as relation, pg_catalog.bit_or(t.tgtype::int4) as kinds, c.relkind = 'p' as has_parts
         from part p
         join pg_catalog.pg_trigger t on t.tgrelid = p.oid and t.tgtype & 3 = 3 and t.tgenabled in ('O', 'A')
         join pg_catalog.pg_proc f on f.oid = t.tgfoid
         join pg_catalog.pg_namespace o on o.oid = f.pronamespace and o.nspname <> 'dl'
         join pg_catalog.pg_class c on c.oid = p.root
         group by c.oid, c.relkind
         order by 1",
    )
    .bind(tables.oids())
    .fetch_all(conn)
    .await?;
    for row in rows {
        let method =
            |kinds: i32| if row.kinds & kinds == 0 { WriteMethod::Direct } else { WriteMethod::Trigger };
        // a row that moves to another partition is deleted from one and inserted into the other
        let update = if row.has_parts { 28 } else { 16 };
        let write_support = WriteSupport { insert: method(4), update: method(update), delete: method(8) };
        tables.at(row.relation, |table| table.write_support = write_support);
    }
    Ok(())
}
