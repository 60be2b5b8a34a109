//! Functions and procedures, default privileges, extensions.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::PgConnection;
use sqlx::postgres::types::Oid;
use sqlx::types::Json;

use super::acl;
use crate::failure::PgError;
use crate::introspect::actual::{Acl, QName, Routine};
use crate::introspect::declared;

#[derive(sqlx::FromRow)]
struct RoutineRow {
    oid: Oid,
    signature: String,
    owner: String,
    definition: Option<String>,
    acl: Json<Acl>,
}

/// Aggregates and window functions too: they are granted and revoked alike.
pub(super) async fn routines(conn: &mut PgConnection) -> Result<BTreeMap<String, Routine>, PgError> {
    let rows: Vec<RoutineRow> = sqlx::query_as(concat!(
        "select p.oid, p.oid::regprocedure::text as signature, pg_get_userbyid(p.proowner)::text as owner, \
                case when n.nspname = 'dl' and p.proname ~ '^(protect_|capture)' and p.prokind = 'f' \
                     then pg_get_functiondef(p.oid) end as definition, ",
        acl!("p.proacl", "'f'", "p.proowner"),
        " as acl from pg_proc p join pg_namespace n on n.oid = p.pronamespace \
          where p.oid >= 16384 and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' \
            and not exists (select from pg_depend e where e.classid = 'pg_proc'::regclass and e.objid = p.oid \
                            and e.deptype = 'e')"
    ))
    .fetch_all(&mut *conn)
    .await?;
    let oids: Vec<Oid> = rows.iter().map(|row| row.oid).collect();
    let mut declared = declared::routines(conn, &oids).await?;
    let routine = |row: RoutineRow| {
        let declared = declared.remove(&row.oid.0)?;
        Some((
            row.signature,
            Routine { owner: row.owner, declared, definition: row.definition, acl: row.acl.0 },
        ))
    };
    Ok(rows.into_iter().filter_map(routine).collect())
}

/// Schema and name of the members of extensions.
pub(super) async fn of_extensions(conn: &mut PgConnection) -> Result<BTreeSet<QName>, PgError> {
    let names: Vec<QName> = sqlx::query_as(
        "select distinct n.nspname::text, p.proname::text from pg_depend e \
         join pg_proc p on p.oid = e.objid join pg_namespace n on n.oid = p.pronamespace \
         where e.classid = 'pg_proc'::regclass and e.deptype = 'e'",
    )
    .fetch_all(conn)
    .await?;
    Ok(names.into_iter().collect())
}

/// Of the role that owns the database.
pub(super) async fn default_acl(conn: &mut PgConnection) -> Result<BTreeMap<char, Acl>, PgError> {
    let rows: Vec<(String, Json<Acl>)> = sqlx::query_as(concat!(
        "select a.defaclobjtype::text, ",
        acl!("a.defaclacl", "'r'", "a.defaclrole"),
        " from pg_default_acl a join pg_database d on d.datdba = a.defaclrole \
          where d.datname = current_database() and a.defaclnamespace = 0"
    ))
    .fetch_all(conn)
    .await?;
    let entry = |(kind, Json(acl)): (String, Json<Acl>)| Some((kind.chars().next()?, acl));
    Ok(rows.into_iter().filter_map(entry).collect())
}

/// The same, schema by schema.
pub(super) async fn default_acl_in(
    conn: &mut PgConnection,
) -> Result<BTreeMap<(String, char), Acl>, PgError> {
    let rows: Vec<(String, String, Json<Acl>)> = sqlx::query_as(concat!(
        "select n.nspname::text, a.defaclobjtype::text, ",
        acl!("a.defaclacl", "'r'", "a.defaclrole"),
        " from pg_default_acl a join pg_database d on d.datdba = a.defaclrole join pg_namespace n on n.oid = a.defaclnamespace \
          where d.datname = current_database()"
    ))
    .fetch_all(conn)
    .await?;
    let entry =
        |(schema, kind, Json(acl)): (String, String, Json<Acl>)| Some(((schema, kind.chars().next()?), acl));
    Ok(rows.into_iter().filter_map(entry).collect())
}

/// What shows PUBLIC the statements of all databases of the server, as the lines that take it away.
pub(super) async fn shown_statements(conn: &mut PgConnection) -> Result<Vec<String>, PgError> {
    let lines = sqlx::query_scalar(
        "select case when c.oid is not null then format('revoke all on %s from public;', c.oid::regclass) \
                     else format('revoke all on function %s from public;', p.oid::regprocedure) end \
         from pg_extension e \
         join pg_depend d on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid and d.deptype = 'e' \
         left join pg_class c on d.classid = 'pg_class'::regclass and c.oid = d.objid \
         left join pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid \
         where e.extname = 'pg_stat_statements' \
           and exists (select from aclexplode(coalesce(c.relacl, p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0) \
         order by 1",
    );
    Ok(lines.fetch_all(conn).await?)
}
