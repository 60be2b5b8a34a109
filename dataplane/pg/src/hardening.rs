//! Functions of PostgreSQL that run a text as SQL or write into the log of the server, whoever calls them: a new database lets PUBLIC
//! execute them, and only a superuser can change that. Whoever writes SQL may not name them either way; without them what a mistake
//! there would open is closed, too.

use sqlx::PgConnection;

use crate::connect::session;
use crate::failure::PgError;

/// The statements that take from PUBLIC what it still may; none where all is taken.
///
/// `ts_rewrite` has a form that runs nothing. An UPDATE of `pg_settings` calls `set_config`. `pg_logical_emit_message` of PostgreSQL 16 has
/// three parameters, of 17 four: a dump with its rights, as `pg_upgrade` makes one, cannot be restored into a newer version.
const PUBLIC_RIGHTS: &str = "\
    select format('revoke execute on function pg_catalog.%I(%s) from public', p.proname, pg_get_function_identity_arguments(p.oid)) \
    from pg_proc p \
    where p.pronamespace = 'pg_catalog'::regnamespace \
      and (p.proname ~ '^(query|table|cursor|schema|database)_to_xml' or p.proname = 'ts_stat' \
           or p.proname = 'pg_logical_emit_message' and p.pronargs > 3 or p.proname = 'ts_rewrite' and p.pronargs = 2) \
      and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0) \
    union all \
    select 'revoke update on pg_catalog.pg_settings from public' from pg_class c \
    where c.oid = 'pg_catalog.pg_settings'::regclass \
      and exists (select from aclexplode(c.relacl) a where a.grantee = 0 and a.privilege_type = 'UPDATE') \
    order by 1";

/// What an earlier version of Rowgate took and no newer PostgreSQL can be upgraded with.
const GIVEN_BACK: &str = "\
    select format('grant execute on function pg_catalog.pg_logical_emit_message(%s) to public', pg_get_function_identity_arguments(p.oid)) \
    from pg_proc p \
    where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = 'pg_logical_emit_message' and p.pronargs = 3 \
      and not exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0)";

/// What PUBLIC may do in this database that nothing needs, as the statements that end it.
///
/// # Errors
/// As PostgreSQL gives them.
pub async fn public_rights(conn: &mut PgConnection) -> Result<Vec<String>, PgError> {
    Ok(sqlx::query_scalar(PUBLIC_RIGHTS).fetch_all(conn).await?)
}

/// Takes all of it from PUBLIC, as a superuser, and nothing else.
///
/// # Errors
/// As PostgreSQL gives them; then nothing was taken.
pub(crate) async fn revoke(conn: &mut PgConnection) -> Result<(), PgError> {
    session::script(conn, "set search_path = pg_catalog").await?;
    let mut statements = public_rights(conn).await?;
    statements.extend(sqlx::query_scalar::<_, String>(GIVEN_BACK).fetch_all(&mut *conn).await?);
    session::script(conn, &statements.join(";\n")).await
}
