//! What the constraints and unique indexes of a table are called, about which of its columns they are, and by which columns
//! its rows are kept apart.

use rowgate_sql::catalog::TableColumns;
use sqlx::PgConnection;

use super::ident;
use crate::failure::PgError;

#[derive(sqlx::FromRow)]
struct Row {
    schema: String,
    object: String,
    name: String,
    columns: Vec<String>,
    /// A unique index that is checked at once.
    at_once: bool,
}

/// Adds to each of `tables` those that are about columns alone. One with an expression, a condition, or the row as a whole
/// may be about any column, and nobody is told its name. Unique indexes that are checked at once keep all rows apart.
pub(super) async fn note(conn: &mut PgConnection, tables: &mut [TableColumns]) -> Result<(), PgError> {
    let rows: Vec<Row> = sqlx::query_as(
        "with relation as (
             select distinct c.oid, n.nspname, c.relname
             from dl.entities e
             join pg_catalog.pg_namespace n on n.nspname = e.definition ->> 'schema'
             join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = e.definition ->> 'object'
                                       and c.relkind in ('r', 'p')
         ), named as (
             select k.conrelid as oid, k.conname as name, k.conkey as key, false as at_once
             from relation r
             join pg_catalog.pg_constraint k on k.conrelid = r.oid and k.contype in ('p', 'u', 'f', 'c', 'x')
             left join pg_catalog.pg_index i on i.indexrelid = k.conindid and i.indrelid = k.conrelid
             where i.indpred is null and i.indexprs is null
             union all
             select i.indrelid, x.relname, (i.indkey::int2[])[0:i.indnkeyatts - 1], i.indisvalid and i.indimmediate
                    and not i.indisexclusion
             from relation r
             join pg_catalog.pg_index i on i.indrelid = r.oid and i.indisunique
                                       and i.indpred is null and i.indexprs is null
             join pg_catalog.pg_class x on x.oid = i.indexrelid
         )
         select r.nspname::text as schema, r.relname::text as object, m.name::text as name,
                array(select a.attname::text from pg_catalog.pg_attribute a
                      where a.attrelid = r.oid and a.attnum = any (m.key) order by a.attnum) as columns, m.at_once
         from relation r
         -- a constraint and its index are one
         join (select oid, name, key, pg_catalog.bool_or(at_once) as at_once from named group by oid, name, key) m
              on m.oid = r.oid and 0 < all (m.key)
         order by 1, 2, 3",
    )
    .fetch_all(conn)
    .await?;
    for row in rows {
        let (schema, object) = (ident(&row.schema)?, ident(&row.object)?);
        let columns: Vec<_> = row.columns.iter().map(|name| ident(name)).collect::<Result<_, _>>()?;
        if let Some(table) = tables.iter_mut().find(|it| it.schema == schema && it.object == object) {
            if row.at_once {
                table.unique.push(columns.clone());
            }
            table.constraints.push((row.name, columns));
        }
    }
    Ok(())
}
