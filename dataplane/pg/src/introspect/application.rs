//! A database of an application before anything of Rowgate's is in it, as any login there can read it.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{Connection as _, PgConnection};

use super::{SNAPSHOT, qualify, relations};
use crate::failure::PgError;
use crate::introspect::actual::{QName, Relation};
use crate::tenant::read_limits::{of, within};

/// Roles whose COPY FROM or dump of one of the tables row-level security would end. Owners, and those that inherit their privileges, are held
/// by no policy. BYPASSRLS is not inherited, so that a role without a login counts only where a session takes it up by SET ROLE.
const HELD_BY_POLICIES: &str = "\
    select r.rolname::text from pg_roles r \
    where r.oid >= 16384 and not r.rolsuper and not r.rolbypassrls \
      and (r.rolcanlogin or exists (select from pg_auth_members m \
                                    where m.roleid = r.oid and m.set_option and not m.inherit_option)) \
      and not pg_has_role(r.oid, (select datdba from pg_database where datname = current_database()), 'USAGE') \
      and exists (select from unnest($1::int8[]) t where has_any_column_privilege(r.oid, t::oid, 'SELECT, INSERT')) \
    order by 1 limit 1000";

/// What a first manifest is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    pub database: String,
    pub owner: String,
    pub owner_is_superuser: bool,
    /// Whether it has a schema `dl`, as databases of Tenants have.
    pub has_records: bool,
    /// All but the system's.
    pub schemas: BTreeSet<String>,
    /// As in [`TenantDb`](crate::introspect::actual::TenantDb).
    pub relations: BTreeMap<QName, Relation>,
}

/// Reads catalogs of PostgreSQL and nothing else, which every login may.
///
/// # Errors
/// As PostgreSQL gives them.
pub async fn application(conn: &mut PgConnection) -> Result<Application, PgError> {
    within("the database", Box::pin(read(conn))).await
}

async fn read(conn: &mut PgConnection) -> Result<Application, PgError> {
    let mut snapshot = conn.begin_with(SNAPSHOT).await?;
    qualify(&mut snapshot).await?;
    // PostgreSQL prints expressions of a table with its lock, which the application may hold
    sqlx::query("set local lock_timeout = '5s'").execute(&mut *snapshot).await?;
    let (database, owner, owner_is_superuser, has_records): (String, String, bool, bool) = sqlx::query_as(
        "select d.datname::text, o.rolname::text, o.rolsuper, exists (select from pg_namespace where nspname = 'dl') \
         from pg_database d join pg_roles o on o.oid = d.datdba where d.datname = current_database()",
    )
    .fetch_one(&mut *snapshot)
    .await?;
    let schemas = relations::schemas(&mut snapshot).await.map_err(of("pg_namespace"))?;
    let policies = relations::policies(&mut snapshot).await.map_err(of("pg_policy"))?;
    let relations = relations::relations(&mut snapshot, policies).await?;
    snapshot.rollback().await?;
    let schemas = schemas.into_keys().collect();
    Ok(Application { database, owner, owner_is_superuser, has_records, schemas, relations })
}

/// The roles, 1,000 at most, that read or write one of `tables` and are held by policies, which PostgreSQL lets neither COPY FROM nor dump.
///
/// # Errors
/// As PostgreSQL gives them.
pub async fn held_by_policies(conn: &mut PgConnection, tables: &[u32]) -> Result<Vec<String>, PgError> {
    within("the roles", Box::pin(read_roles(conn, tables))).await
}

async fn read_roles(conn: &mut PgConnection, tables: &[u32]) -> Result<Vec<String>, PgError> {
    let tables: Vec<i64> = tables.iter().copied().map(i64::from).collect();
    let mut snapshot = conn.begin_with(SNAPSHOT).await?;
    qualify(&mut snapshot).await?;
    let roles = sqlx::query_scalar(HELD_BY_POLICIES).bind(tables).fetch_all(&mut *snapshot).await;
    let roles = roles.map_err(|error| of("pg_roles")(error.into()))?;
    snapshot.rollback().await?;
    Ok(roles)
}
