//! The tenants of an installation: their rows in the control database, and the row of `dl.state` in their own.

use std::collections::BTreeSet;

use rowgate_core::name::{TenantSlug, Ulid};
use rowgate_sql::ddl::records;
use sqlx::{PgConnection, Row as _, postgres::PgRow};

use crate::connect::session;
use crate::control::{exports, leader, subscriptions};
use crate::failure::PgError;
use crate::tenant::read_limits::{of, within};

/// How far a tenant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Being made; not served yet.
    Creating,
    Live,
    /// Its Tenant was deleted and its database kept.
    Retained,
}

/// A row of `control.tenants`, for reconciling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub id: Ulid,
    pub slug: String,
    /// `metadata.uid` of the Tenant.
    pub uid: String,
    pub namespace: String,
    /// `metadata.name` of the Tenant.
    pub name: String,
    /// The system identifier of its PostgreSQL cluster; `None`: that of the control database.
    pub cluster: Option<String>,
    pub database: String,
    pub phase: Phase,
    /// Of `dl.state` after the last completed pass.
    pub generation: i64,
    /// Namespace and name of the Tenant that a retained database was handed to; `None`: it is for the namespace it was retained
    /// in.
    pub handed_to: Option<(String, String)>,
    /// Its database is being dropped, or half of it is gone.
    pub dropping: bool,
}

/// A live tenant, for serving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantRow {
    pub id: Ulid,
    pub slug: TenantSlug,
    /// The system identifier of its PostgreSQL cluster; `None`: that of the control database.
    pub cluster: Option<String>,
    pub database: String,
    /// Of `dl.state` after the last completed pass.
    pub generation: i64,
}

/// What a new row takes.
#[derive(Debug, Clone, Copy)]
pub struct NewTenant<'a> {
    pub id: &'a Ulid,
    pub slug: &'a str,
    pub uid: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// As [`Record::cluster`].
    pub cluster: Option<&'a str>,
    pub database: &'a str,
}

/// A statement that gives [`Record`]s.
macro_rules! record {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            " id, slug, uid, namespace, name, cluster, database, phase, generation, handed_namespace, handed_name, dropping ",
            $after
        )
    };
}
pub(crate) use record;

/// The live tenants, by slug. As `rowgate_dataplane`.
pub async fn list(conn: &mut PgConnection) -> Result<Vec<TenantRow>, PgError> {
    let text = "select id, slug, cluster, database, generation from control.tenants where phase = 'live' order by slug";
    Ok(sqlx::query_as(text).fetch_all(conn).await?)
}

/// The tenant of the object `uid`.
pub async fn find_by_uid(conn: &mut PgConnection, uid: &str) -> Result<Option<Record>, PgError> {
    let text = record!("select", "from control.tenants where uid = $1");
    Ok(sqlx::query_as(text).bind(uid).fetch_optional(conn).await?)
}

/// The tenant with this id, whichever its phase.
pub async fn find_by_id(conn: &mut PgConnection, id: &Ulid) -> Result<Option<Record>, PgError> {
    let text = record!("select", "from control.tenants where id = $1");
    Ok(sqlx::query_as(text).bind(id.as_str()).fetch_optional(conn).await?)
}

/// The tenant called `slug`, whichever its phase.
pub async fn find_by_slug(conn: &mut PgConnection, slug: &str) -> Result<Option<Record>, PgError> {
    let text = record!("select", "from control.tenants where slug = $1");
    Ok(sqlx::query_as(text).bind(slug).fetch_optional(conn).await?)
}

/// Those of `ids` that no row has, whichever its phase.
pub async fn without_row(conn: &mut PgConnection, ids: Vec<Ulid>) -> Result<Vec<Ulid>, PgError> {
    if ids.is_empty() {
        return Ok(ids);
    }
    let texts: Vec<&str> = ids.iter().map(Ulid::as_str).collect();
    let known = sqlx::query_scalar("select id from control.tenants where id = any($1)").bind(texts);
    let known: BTreeSet<String> = known.fetch_all(conn).await?.into_iter().collect();
    Ok(ids.into_iter().filter(|id| !known.contains(id.as_str())).collect())
}

/// Every tenant whose manifest has not been deleted.
pub async fn not_retained(conn: &mut PgConnection) -> Result<Vec<Record>, PgError> {
    let text = record!("select", "from control.tenants where phase <> 'retained' order by id");
    Ok(sqlx::query_as(text).fetch_all(conn).await?)
}

/// Whether one of `databases` on this cluster is that of a Tenant in another namespace.
pub async fn are_of_another_namespace(
    conn: &mut PgConnection,
    cluster: Option<&str>,
    databases: &[String],
    namespace: &str,
) -> Result<bool, PgError> {
    let query = sqlx::query_scalar(
        "select exists (select from control.tenants where database = any($1) and cluster is not distinct from $2 and namespace <> $3)",
    );
    Ok(query.bind(databases).bind(cluster).bind(namespace).fetch_one(conn).await?)
}

/// A row in phase `creating`; 23505 when the slug or the database's name is taken.
pub async fn create(conn: &mut PgConnection, new: NewTenant<'_>) -> Result<Record, PgError> {
    let text = record!(
        "insert into control.tenants (id, slug, uid, namespace, name, cluster, database) values ($1, $2, $3, $4, $5, $6, $7) returning",
        ""
    );
    let query = sqlx::query_as(text).bind(new.id.as_str()).bind(new.slug).bind(new.uid);
    let query = query.bind(new.namespace).bind(new.name).bind(new.cluster).bind(new.database);
    Ok(query.fetch_one(conn).await?)
}

/// Gives the retained tenant `old` to the object `uid`; `None`: somebody else was faster, or it is being dropped.
pub async fn adopt(
    conn: &mut PgConnection,
    old: &Record,
    uid: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Record>, PgError> {
    let text = record!(
        "update control.tenants set uid = $2, namespace = $3, name = $4, phase = 'creating', retained_at = null, \
           handed_namespace = null, handed_name = null \
         where id = $1 and uid = $5 and phase = 'retained' and not dropping returning",
        ""
    );
    let query = sqlx::query_as(text).bind(old.id.as_str()).bind(uid).bind(namespace).bind(name);
    Ok(query.bind(&old.uid).fetch_optional(conn).await?)
}

/// Served from now on, at `generation`.
pub async fn set_live(conn: &mut PgConnection, id: &Ulid, generation: i64) -> Result<(), PgError> {
    // a pass over an object that it was taken from meanwhile must not bring it back
    let text = "update control.tenants set phase = 'live', generation = $2, retained_at = null \
                where id = $1 and handed_namespace is null and not dropping";
    sqlx::query(text).bind(id.as_str()).bind(generation).execute(conn).await?;
    Ok(())
}

/// Served no more; the database stays.
pub async fn set_retained(conn: &mut PgConnection, id: &Ulid) -> Result<(), PgError> {
    let text = "update control.tenants set phase = 'retained', retained_at = coalesce(retained_at, now()) where id = $1";
    sqlx::query(text).bind(id.as_str()).execute(conn).await?;
    Ok(())
}

/// Forgets a tenant whose database and roles are gone.
pub async fn forget(conn: &mut PgConnection, id: &Ulid) -> Result<(), PgError> {
    sqlx::query("delete from control.key_uses where tenant = $1")
        .bind(id.as_str())
        .execute(&mut *conn)
        .await?;
    sqlx::query("delete from control.served where tenant = $1").bind(id.as_str()).execute(&mut *conn).await?;
    subscriptions::forget(conn, id).await?;
    exports::forget(conn, id).await?;
    sqlx::query("delete from control.tenants where id = $1").bind(id.as_str()).execute(conn).await?;
    Ok(())
}

/// Whose sessions are open in a database, by role.
pub async fn sessions(conn: &mut PgConnection, database: &str) -> Result<Vec<String>, PgError> {
    let text = "select distinct usename::text from pg_catalog.pg_stat_activity where datname = $1 and usename is not null";
    Ok(sqlx::query_scalar(text).bind(database).fetch_all(conn).await?)
}

/// `dl.fence`, first in a transaction of the owner. [`PgError::Fenced`] when it says that somebody else took it.
pub(crate) async fn fence(open: &mut PgConnection, epoch: i64) -> Result<(), PgError> {
    session::execute(open, &records::fence(epoch)).await.map_err(fenced)?;
    Ok(())
}

/// What `error` is when `dl.fence` of a tenant's database gave it.
#[must_use]
pub fn fenced(error: PgError) -> PgError {
    match error {
        PgError::Sqlstate { code, message, .. } if code == leader::REPLACED => PgError::Fenced { message },
        other => other,
    }
}

/// Takes the fence of a tenant's database, as the owner of schema `dl`: whoever held it before fails from now on.
pub async fn claim_epoch(conn: &mut PgConnection) -> Result<i64, PgError> {
    let row = sqlx::query_scalar("update dl.state set epoch = epoch + 1 returning epoch");
    within("dl.state", async { Ok(row.fetch_one(conn).await?) }).await.map_err(of("dl.state"))
}

/// Of what stands in a tenant's database.
pub async fn generation(conn: &mut PgConnection) -> Result<i64, PgError> {
    let row = sqlx::query_scalar("select generation from dl.state");
    within("dl.state", async { Ok(row.fetch_one(conn).await?) }).await.map_err(of("dl.state"))
}

impl<'r> sqlx::FromRow<'r, PgRow> for TenantRow {
    fn from_row(row: &'r PgRow) -> Result<TenantRow, sqlx::Error> {
        let (id, slug): (String, String) = (row.try_get("id")?, row.try_get("slug")?);
        Ok(TenantRow {
            id: id.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            slug: slug.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            cluster: row.try_get("cluster")?,
            database: row.try_get("database")?,
            generation: row.try_get("generation")?,
        })
    }
}

impl<'r> sqlx::FromRow<'r, PgRow> for Record {
    fn from_row(row: &'r PgRow) -> Result<Record, sqlx::Error> {
        let id: String = row.try_get("id")?;
        let phase: String = row.try_get("phase")?;
        let handed: (Option<String>, Option<String>) =
            (row.try_get("handed_namespace")?, row.try_get("handed_name")?);
        Ok(Record {
            id: id.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            slug: row.try_get("slug")?,
            uid: row.try_get("uid")?,
            namespace: row.try_get("namespace")?,
            name: row.try_get("name")?,
            cluster: row.try_get("cluster")?,
            database: row.try_get("database")?,
            phase: match phase.as_str() {
                "live" => Phase::Live,
                "retained" => Phase::Retained,
                _ => Phase::Creating,
            },
            generation: row.try_get("generation")?,
            handed_to: handed.0.zip(handed.1),
            dropping: row.try_get("dropping")?,
        })
    }
}
