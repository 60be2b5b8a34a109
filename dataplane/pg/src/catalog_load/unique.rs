//! By which columns the rows of a table are kept apart.

use rowgate_sql::catalog::TableColumns;
use sqlx::PgConnection;

use super::ident;
use crate::failure::PgError;

#[derive(sqlx::FromRow)]
struct Row {
    schema: String,
    object: String,
    columns: Vec<String>,
}

/// Adds to each of `tables` the unique indexes over all its rows that are checked at once.
pub(super) async fn note(conn: &mut PgConnection, tables: &mut [TableColumns]) -> Result<(), PgError> {
    let rows: Vec<Row> = sqlx::query_as(
        "select distinct n.nspname::text as schema, c.relname::text as object,
                array(select a.attname::text from pg_catalog.pg_attribute a
                      where a.attrelid = c.oid and a.attnum = any ((i.indkey::int2[])[0:i.indnkeyatts - 1])
                      order by a.attnum) as columns
         from dl.entities e
         join pg_catalog.pg_namespace n on n.nspname = e.definition ->> 'schema'
         join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = e.definition ->> 'object'
                                   and c.relkind in ('r', 'p')
         join pg_catalog.pg_index i on i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indimmediate
                                   and i.indpred is null and i.indexprs is null
         order by 1, 2, 3",
    )
    .fetch_all(conn)
    .await?;
    for row in rows {
        let (schema, object) = (ident(&row.schema)?, ident(&row.object)?);
        let columns = row.columns.iter().map(|name| ident(name)).collect::<Result<_, _>>()?;
        if let Some(table) = tables.iter_mut().find(|it| it.schema == schema && it.object == object) {
            table.unique.push(columns);
        }
    }
    Ok(())
}
