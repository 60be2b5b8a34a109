//! What the constraints and unique indexes of a table are called, about which of its columns they are, and by which columns
//! its rows are kept apart.

use sqlx::PgConnection;
use sqlx::postgres::types::Oid;

use super::ident;
use super::tables::Tables;
use crate::failure::PgError;

#[derive(sqlx::FromRow)]
struct Row {
    relation: Oid,
    name: String,
    columns: Vec<String>,
    /// A unique index that is checked at once.
    at_once: bool,
}

/// Adds to each of `tables` those that are about columns alone. One with an expression, a condition, or the row as a whole
/// may be about any column, and nobody is told its name. Unique indexes that are checked at once keep all rows apart.
pub(super) async fn note(conn: &mut PgConnection, tables: &mut Tables) -> Result<(), PgError> {
    let rows: Vec<Row> = sqlx::query_as(
        "with named as (
             select k.conrelid as oid, k.conname as name, k.conkey as key, false as at_once
             from pg_catalog.pg_constraint k
             left join pg_catalog.pg_index i on i.indexrelid = k.conindid and i.indrelid = k.conrelid
             where k.conrelid = any ($1) and k.contype in ('p', 'u', 'f', 'c', 'x') and i.indpred is null and i.indexprs is null
             union all
             select i.indrelid, x.relname, (i.indkey::int2[])[0:i.indnkeyatts - 1], i.indisvalid and i.indimmediate
                    and not i.indisexclusion
             from pg_catalog.pg_index i
             join pg_catalog.pg_class x on x.oid = i.indexrelid
             where i.indrelid = any ($1) and i.indisunique and i.indpred is null and i.indexprs is null
         )
         select m.oid as relation, m.name::text as name,
                array(select a.attname::text from pg_catalog.pg_attribute a
                      where a.attrelid = m.oid and a.attnum = any (m.key) order by a.attnum) as columns, m.at_once
         -- a constraint and its index are one
         from (select oid, name, key, pg_catalog.bool_or(at_once) as at_once from named group by oid, name, key) m
         where 0 < all (m.key)
         order by 1, 2",
    )
    .bind(tables.oids())
    .fetch_all(conn)
    .await?;
    for row in rows {
        let columns: Vec<_> = row.columns.iter().map(|name| ident(name)).collect::<Result<_, _>>()?;
        tables.at(row.relation, |table| {
            if row.at_once {
                table.unique.push(columns.clone());
            }
            table.constraints.push((row.name, columns));
        });
    }
    Ok(())
}
