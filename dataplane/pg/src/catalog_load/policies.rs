//! Which tables hide no row from anybody.

use rowgate_sql::catalog::TableColumns;
use sqlx::PgConnection;

use super::ident;
use crate::failure::PgError;

/// Notes it in each of `tables`: for reading and for changing there is a permissive policy for everybody whose expression is
/// the word `true`, and no restrictive one that says anything else. What only comes to the same is not looked for. A constant is
/// printed without the table, whose lock PostgreSQL would take for it.
pub(super) async fn note(conn: &mut PgConnection, tables: &mut [TableColumns]) -> Result<(), PgError> {
    let shown: Vec<(String, String)> = sqlx::query_as(
        "with relation as (
             select distinct c.oid, n.nspname, c.relname
             from dl.entities e
             join pg_catalog.pg_namespace n on n.nspname = e.definition ->> 'schema'
             join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = e.definition ->> 'object'
                                       and c.relkind in ('r', 'p')
         ), policy as (
             select p.polrelid, p.polcmd, p.polpermissive,
                    case when p.polqual::text like '{CONST %' then pg_catalog.pg_get_expr(p.polqual, 0) = 'true' else false end
                    and p.polroles = '{0}' as shows
             from relation r
             join pg_catalog.pg_policy p on p.polrelid = r.oid and p.polcmd in ('r', 'w', '*')
         )
         select r.nspname::text, r.relname::text
         from relation r
         join policy p on p.polrelid = r.oid
         group by r.oid, r.nspname, r.relname
         having pg_catalog.bool_or(p.shows and p.polpermissive and p.polcmd in ('r', '*'))
            and pg_catalog.bool_or(p.shows and p.polpermissive and p.polcmd in ('w', '*'))
            and pg_catalog.bool_and(p.shows or p.polpermissive)
         order by 1, 2",
    )
    .fetch_all(conn)
    .await?;
    for (schema, object) in shown {
        let (schema, object) = (ident(&schema)?, ident(&object)?);
        if let Some(table) = tables.iter_mut().find(|it| it.schema == schema && it.object == object) {
            table.hides = false;
        }
    }
    Ok(())
}
