//! Functions and procedures, default privileges, extensions.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::PgConnection;
use sqlx::postgres::types::Oid;
use sqlx::types::Json;

use super::acl;
use crate::failure::PgError;
use crate::introspect::actual::{Acl, QName, Routine, Unconfined};
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

/// Schema and name of the members of extensions: of routines, and of tables, views and the like.
pub(super) async fn of_extensions(
    conn: &mut PgConnection,
) -> Result<(BTreeSet<QName>, BTreeSet<QName>), PgError> {
    let names: Vec<(bool, String, String)> = sqlx::query_as(
        "select distinct true, n.nspname::text, p.proname::text from pg_depend e \
         join pg_proc p on p.oid = e.objid join pg_namespace n on n.oid = p.pronamespace \
         where e.classid = 'pg_proc'::regclass and e.deptype = 'e' union all \
         select false, n.nspname::text, c.relname::text from pg_depend e \
         join pg_class c on c.oid = e.objid join pg_namespace n on n.oid = c.relnamespace \
         where e.classid = 'pg_class'::regclass and e.deptype = 'e'",
    )
    .fetch_all(conn)
    .await?;
    let (routines, relations): (Vec<_>, Vec<_>) = names.into_iter().partition(|it| it.0);
    let named = |rows: Vec<(bool, String, String)>| {
        rows.into_iter().map(|(_, schema, name)| (schema, name)).collect()
    };
    Ok((named(routines), named(relations)))
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

#[derive(sqlx::FromRow)]
struct UnconfinedRow {
    signature: String,
    definer: bool,
    language: String,
    extension: Option<String>,
    version: Option<String>,
}

/// What PUBLIC may execute that is SECURITY DEFINER or in a language of superusers, an aggregate by what it calls: PostgreSQL checks no right
/// on that. Functions of triggers are left out, as no statement can call one, and so are those of trusted extensions, which PostgreSQL lets every
/// role install that may make a schema. And what PUBLIC may read, which a function can do for its caller.
pub(super) async fn unconfined(conn: &mut PgConnection) -> Result<Vec<Unconfined>, PgError> {
    let mut rows: Vec<UnconfinedRow> = sqlx::query_as(
        "with calls as ( \
           select p.oid, p.oid as called from pg_proc p where p.prokind <> 'a' and p.oid >= 16384 \
           union all \
           select g.aggfnoid::oid, s.oid from pg_aggregate g \
           join pg_proc s on s.oid in (g.aggtransfn, g.aggfinalfn, g.aggcombinefn, g.aggserialfn, g.aggdeserialfn, \
                                       g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn) \
           where g.aggfnoid >= 16384 and s.oid >= 16384) \
         select distinct on (c.prosecdef, coalesce(x.extname, p.oid::regprocedure::text)) \
                p.oid::regprocedure::text as signature, c.prosecdef as definer, l.lanname::text as language, \
                x.extname::text as extension, x.extversion as version \
         from calls k join pg_proc p on p.oid = k.oid join pg_proc c on c.oid = k.called join pg_language l on l.oid = c.prolang \
         join pg_namespace n on n.oid = p.pronamespace \
         left join pg_depend e on e.classid = 'pg_proc'::regclass and e.objid = c.oid and e.deptype = 'e' \
                              and e.refclassid = 'pg_extension'::regclass \
         left join pg_extension x on x.oid = e.refobjid \
         where (c.prosecdef or not l.lanpltrusted) and n.nspname <> 'dl' \
           and p.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype) \
           and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0) \
         order by c.prosecdef desc, coalesce(x.extname, p.oid::regprocedure::text), p.oid::regprocedure::text",
    )
    .fetch_all(&mut *conn)
    .await?;
    // PostgreSQL reads a file for each extension that there is
    if rows.iter().any(|row| row.extension.is_some() && !row.definer) {
        let trusted: Vec<(String, String)> =
            sqlx::query_as("select name::text, version from pg_available_extension_versions where trusted")
                .fetch_all(&mut *conn)
                .await?;
        let is_trusted = |row: &UnconfinedRow| {
            trusted.iter().any(|(name, version)| {
                row.extension.as_ref() == Some(name) && row.version.as_ref() == Some(version)
            })
        };
        rows.retain(|row| row.definer || !is_trusted(row));
    }
    let relations: Vec<String> = sqlx::query_scalar(
        "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace \
         where c.oid >= 16384 and c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname !~ '^pg_' \
           and n.nspname not in ('information_schema', 'dl') \
           and not (coalesce(c.reloptions, '{}') && '{security_invoker=true,security_invoker=on,security_invoker=1}') \
           and (exists (select from aclexplode(c.relacl) a where a.grantee = 0 and a.privilege_type = 'SELECT') \
                or exists (select from pg_attribute t, aclexplode(t.attacl) a \
                           where t.attrelid = c.oid and a.grantee = 0 and a.privilege_type = 'SELECT')) \
           and not exists (select from pg_depend e where e.classid = 'pg_class'::regclass and e.objid = c.oid and e.deptype = 'e') \
         order by 1",
    )
    .fetch_all(conn)
    .await?;
    let relations = relations.into_iter().map(|name| Unconfined {
        right: format!("read {name}"),
        line: format!("revoke select on {name} from public;"),
    });
    Ok(rows.into_iter().map(UnconfinedRow::into_unconfined).chain(relations).collect())
}

/// Casts to `json` by functions that are SECURITY DEFINER, of types that PostgreSQL writes by them.
pub(super) async fn json_casts(conn: &mut PgConnection) -> Result<Vec<Unconfined>, PgError> {
    let rows: Vec<(String, String)> = sqlx::query_as(
        "select p.oid::regprocedure::text, k.castsource::regtype::text from pg_cast k join pg_proc p on p.oid = k.castfunc \
         where k.casttarget = 'json'::regtype and k.castsource >= 16384 and p.prosecdef order by 1, 2",
    )
    .fetch_all(conn)
    .await?;
    let unconfined = |(signature, of): (String, String)| Unconfined {
        right: format!("runs {signature} (SECURITY DEFINER) as the cast from {of}"),
        line: format!("drop cast ({of} as json);"),
    };
    Ok(rows.into_iter().map(unconfined).collect())
}

impl UnconfinedRow {
    fn into_unconfined(self) -> Unconfined {
        let signature = self.signature;
        let why = match self.definer {
            true => "SECURITY DEFINER".to_owned(),
            false => format!("written in {}", self.language),
        };
        let right = format!("execute {signature} ({why})");
        match self.extension {
            None => Unconfined { right, line: format!("revoke execute on routine {signature} from public;") },
            Some(extension) => Unconfined {
                right: format!("{right} and others of the extension {extension}"),
                line: format!(
                    "do $$ declare it regprocedure; begin for it in select d.objid from pg_depend d join pg_extension x on x.oid = d.refobjid where d.classid = 'pg_proc'::regclass and d.deptype = 'e' and x.extname = '{}' loop execute format('revoke execute on routine %s from public', it); end loop; end $$;",
                    extension.replace('\'', "''")
                ),
            },
        }
    }
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
