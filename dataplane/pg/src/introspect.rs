//! Reads what PostgreSQL holds into [`actual`]: a handful of queries over whole sets, none per object.

use jiff::Timestamp;
use rowgate_core::name::Ulid;
use sqlx::{Connection as _, PgConnection};

pub use application::{Application, application, held_by_policies};
pub use cluster::others_of_owner;
pub use holders::{Holder, Named, holders, leftovers, named};
pub use writes::{Counted, Writes, writes};

use crate::control::replicas;
use crate::failure::PgError;
use crate::hardening;
use crate::introspect::actual::{Cluster, TenantDb};
use crate::tenant::read_limits::{of, within};

pub mod actual;
mod application;
mod cluster;
mod columns;
pub mod declared;
mod holders;
mod links;
mod records;
mod relations;
mod routines;
mod triggers;
mod writes;

/// Privileges in `$acl` of an object of `$kind` (as `acldefault` names it) that belongs to `$owner`, as JSON of
/// [`Acl`](crate::introspect::actual::Acl).
macro_rules! acl {
    ($acl:literal, $kind:literal, $owner:literal) => {
        concat!(
            "(select coalesce(jsonb_object_agg(g.grantee, g.privileges), '{}') from (",
            "select case when x.grantee = 0 then 'public' else pg_get_userbyid(x.grantee)::text end as grantee, ",
            "jsonb_agg(x.privilege_type || case when x.is_grantable then '*' else '' end) as privileges ",
            "from aclexplode(coalesce(",
            $acl,
            ", acldefault(",
            $kind,
            ", ",
            $owner,
            "))) x where x.grantee <> ",
            $owner,
            " group by 1) g)"
        )
    };
}
use acl;

/// The roles, memberships and database of one tenant. As the operator on the control database.
pub async fn cluster(conn: &mut PgConnection, tenant: &Ulid, database: &str) -> Result<Cluster, PgError> {
    let mut snapshot = conn.begin_with(SNAPSHOT).await?;
    qualify(&mut snapshot).await?;
    let cluster = Cluster {
        roles: cluster::roles(&mut snapshot, tenant, database).await?,
        memberships: cluster::memberships(&mut snapshot, tenant).await?,
        database: cluster::database(&mut snapshot, database).await?,
        has_template: cluster::has_template(&mut snapshot).await?,
        has_older_replicas: replicas::any_before(&mut snapshot, 3).await?,
    };
    snapshot.rollback().await?;
    Ok(cluster)
}

/// Everything of note in a tenant's database, within [`bounds`](crate::tenant::read_limits). As `t<id>_dl`, whose session runs no code of
/// the tenant's.
pub async fn tenant_db(conn: &mut PgConnection) -> Result<TenantDb, PgError> {
    within("the tenant's database", Box::pin(read_tenant_db(conn, true))).await
}

/// The same of a database in which nothing of Rowgate's is yet, as any login there: no name is looked up, and none printed, under a search
/// path that its owner may have set.
pub async fn untouched_db(conn: &mut PgConnection) -> Result<TenantDb, PgError> {
    within("the database", Box::pin(read_tenant_db(conn, false))).await
}

/// `has_records`: schema `dl` is read, if it is there.
async fn read_tenant_db(conn: &mut PgConnection, has_records: bool) -> Result<TenantDb, PgError> {
    let mut snapshot = conn.begin_with(SNAPSHOT).await?;
    if !has_records {
        qualify(&mut snapshot).await?;
    }
    // PostgreSQL prints expressions of a table with its lock, and somebody may hold it for as long as they like
    sqlx::query("set local lock_timeout = '500ms'").execute(&mut *snapshot).await?;
    // Policies under the search path under which they were applied and recorded: PostgreSQL prints accordingly.
    let policies = relations::policies(&mut snapshot).await.map_err(of("pg_policy"))?;
    qualify(&mut snapshot).await?;
    let (extension_routines, extension_relations) =
        routines::of_extensions(&mut snapshot).await.map_err(of("pg_depend"))?;
    let mut db = TenantDb {
        schemas: relations::schemas(&mut snapshot).await.map_err(of("pg_namespace"))?,
        relations: relations::relations(&mut snapshot, policies).await?,
        routines: routines::routines(&mut snapshot).await.map_err(of("pg_proc"))?,
        extension_routines,
        extension_relations,
        default_acl: routines::default_acl(&mut snapshot).await.map_err(of("pg_default_acl"))?,
        default_acl_in: routines::default_acl_in(&mut snapshot).await.map_err(of("pg_default_acl"))?,
        shown_statements: routines::shown_statements(&mut snapshot).await.map_err(of("pg_extension"))?,
        unconfined: routines::unconfined(&mut snapshot).await.map_err(of("pg_proc"))?,
        json_casts: routines::json_casts(&mut snapshot).await.map_err(of("pg_cast"))?,
        public_rights: hardening::public_rights(&mut snapshot).await.map_err(of("pg_proc"))?,
        ..TenantDb::default()
    };
    if has_records && records::are_there(&mut snapshot).await? {
        db.state = Some(records::state(&mut snapshot).await.map_err(of("dl.state"))?);
        db.keys = records::keys(&mut snapshot).await.map_err(of("dl.keys"))?;
        db.claims = records::claims(&mut snapshot).await.map_err(of("dl.claims"))?;
        db.entities = records::entities(&mut snapshot).await.map_err(of("dl.entities"))?;
        db.relationships = records::relationships(&mut snapshot).await.map_err(of("dl.relationships"))?;
        db.permission_sets =
            records::permission_sets(&mut snapshot).await.map_err(of("dl.permission_sets"))?;
        db.applied = records::applied(&mut snapshot).await.map_err(of("dl.applied"))?;
        if db.applied.keys().any(|(kind, _)| kind == "flag") {
            columns::needed_flags(&mut snapshot, &mut db).await.map_err(of("pg_depend"))?;
        }
    }
    snapshot.rollback().await?;
    Ok(db)
}

/// The database's clock, which recorded times are compared with.
pub async fn clock(conn: &mut PgConnection) -> Result<Timestamp, PgError> {
    let micros = sqlx::query_scalar("select (extract(epoch from clock_timestamp()) * 1000000)::int8");
    records::timestamp(micros.fetch_one(conn).await?)
}

/// One snapshot for all queries.
const SNAPSHOT: &str = "begin isolation level repeatable read, read only";

/// With an empty search path every name that PostgreSQL prints is qualified.
async fn qualify(conn: &mut PgConnection) -> Result<(), PgError> {
    sqlx::query("set local search_path = ''").execute(conn).await?;
    Ok(())
}

fn oid(oid: i64) -> Result<u32, PgError> {
    u32::try_from(oid).map_err(|_| PgError::unexpected("an oid out of range"))
}
