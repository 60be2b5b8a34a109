//! Which tables hide no row from anybody.

use sqlx::PgConnection;
use sqlx::postgres::types::Oid;

use super::tables::Tables;
use crate::failure::PgError;

/// Notes it in each of `tables`: for reading and for changing there is a permissive policy for everybody whose expression is
/// the word `true`, and no restrictive one that says anything else. What only comes to the same is not looked for. A constant is
/// printed without the table, whose lock PostgreSQL would take for it.
pub(super) async fn note(conn: &mut PgConnection, tables: &mut Tables) -> Result<(), PgError> {
    let shown: Vec<Oid> = sqlx::query_scalar(
        "with policy as (
             select p.polrelid, p.polcmd, p.polpermissive,
                    case when p.polqual::text like '{CONST %' then pg_catalog.pg_get_expr(p.polqual, 0) = 'true' else false end
                    and p.polroles = '{0}' as shows
             from pg_catalog.pg_policy p
             where p.polrelid = any ($1) and p.polcmd in ('r', 'w', '*')
         )
         select p.polrelid
         from policy p
         group by p.polrelid
         having pg_catalog.bool_or(p.shows and p.polpermissive and p.polcmd in ('r', '*'))
            and pg_catalog.bool_or(p.shows and p.polpermissive and p.polcmd in ('w', '*'))
            and pg_catalog.bool_and(p.shows or p.polpermissive)
         order by 1",
    )
    .bind(tables.oids())
    .fetch_all(conn)
    .await?;
    shown.into_iter().for_each(|relation| tables.at(relation, |table| table.hides = false));
    Ok(())
}
