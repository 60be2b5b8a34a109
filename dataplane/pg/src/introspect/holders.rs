//! Roles that cannot be dropped because of what stands in somebody else's database: who holds them, and of which tenants they
//! are left. A dependency on a role is the whole cluster's, and everybody may make one by naming the role in a GRANT.

use rowgate_core::name::Ulid;
use rowgate_core::role::TenantLogin;
use sqlx::{Connection as _, PgConnection};

use super::{SNAPSHOT, qualify};
use crate::failure::PgError;
use crate::tenant::read_limits::{of, within};

/// As many are named in a message or line of a log.
const NAMED: i64 = 5;

/// Something in a tenant's database that names a role which is none of its living ones.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Named {
    pub role: String,
    /// As PostgreSQL describes it; 100 characters at most.
    pub object: String,
    /// Of a large object.
    pub large_object: Option<i64>,
}

impl Named {
    /// What takes the name away. A team can do it with its own object; with others it takes whoever may do all.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self.large_object {
            Some(oid) => format!("revoke all on large object {oid} from \"{}\"", self.role),
            None => format!("as a superuser: drop owned by \"{}\"", self.role),
        }
    }
}

/// What of this database names roles of another tenant, or those of dead keys of its own, a few of them. As the tenant's owner
/// `t<id>_owner`.
pub async fn named(conn: &mut PgConnection) -> Result<Vec<Named>, PgError> {
    within("pg_shdepend", read_named(conn)).await.map_err(of("pg_shdepend"))
}

async fn read_named(conn: &mut PgConnection) -> Result<Vec<Named>, PgError> {
    let mut snapshot = conn.begin_with(SNAPSHOT).await?;
    qualify(&mut snapshot).await?;
    let rows = sqlx::query_as(
        "with me as ( \
             select d.oid as database, regexp_replace(session_user::text, 'owner$', '') as prefix from pg_database d \
             where d.datname = current_database() \
         ), role as ( \
             select r.oid, r.rolname from pg_roles r, me \
             where (starts_with(r.rolname, 'key_') or starts_with(r.rolname, 'set_') \
                    or r.rolname ~ '^t[0-9a-z]{26}_' and not starts_with(r.rolname, me.prefix)) \
               and (starts_with(r.rolname, 'key_') and not r.rolcanlogin or not exists ( \
                    select from pg_auth_members m join pg_roles k on k.oid = m.member \
                    where m.roleid = r.oid and m.admin_option and k.rolname = me.prefix || 'keys')) \
         ) \
         select r.rolname::text as role, left(pg_describe_object(d.classid, d.objid, d.objsubid), 100) as object, \
                case when d.classid = 'pg_largeobject'::regclass and d.deptype = 'a' then d.objid::int8 end as large_object \
         from ( \
             select * from pg_shdepend where dbid = (select database from me) \
             union all \
             select * from pg_shdepend \
             where dbid = 0 and classid = 'pg_database'::regclass and objid = (select database from me) \
         ) d \
         join role r on r.oid = d.refobjid and d.refclassid = 'pg_authid'::regclass \
         order by 1, 2 limit $1",
    );
    let named = rows.bind(NAMED).fetch_all(&mut *snapshot).await?;
    snapshot.rollback().await?;
    Ok(named)
}

/// Where something stands that keeps a role from being dropped.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Holder {
    pub role: String,
    pub database: String,
    /// Namespace and name of the Tenant whose database it is, there or gone.
    pub tenant: Option<String>,
    /// The catalog of such objects: `pg_largeobject`, `pg_class`, ...
    pub catalog: String,
    pub n_objects: i64,
}

/// Who holds these roles, a few of them. As the operator on the control database.
pub async fn holders(conn: &mut PgConnection, roles: &[String]) -> Result<Vec<Holder>, PgError> {
    let rows = sqlx::query_as(
        "select r.rolname::text as role, b.datname::text as database, t.namespace || '/' || t.name as tenant, \
                d.classid::regclass::text as catalog, count(*) as n_objects \
         from pg_roles r \
         join pg_shdepend d on d.refclassid = 'pg_authid'::regclass and d.refobjid = r.oid \
         join pg_database b on b.oid = case when d.classid = 'pg_database'::regclass then d.objid else d.dbid end \
         left join control.tenants t on t.database = b.datname \
         where r.rolname = any ($1) group by 1, 2, 3, 4 order by 1, 2, 4 limit $2",
    );
    Ok(rows.bind(roles).bind(NAMED).fetch_all(conn).await?)
}

/// Tenants that are no more and of which roles are left. As the operator on the control database, or on the one of another server of tenants,
/// which has no rows, so that [`without_row`](crate::control::tenants::without_row) decides; a tenant that is being made
/// has its row before its roles, one that is being removed until they are gone; and one that still has a database, though no row
/// (a control database that was restored), is none.
pub async fn leftovers(conn: &mut PgConnection) -> Result<Vec<Ulid>, PgError> {
    let ids: Vec<String> = sqlx::query_scalar(
        "select distinct substr(r.rolname, 2, 26) from pg_roles r \
         join pg_auth_members m on m.roleid = r.oid and m.admin_option \
                               and m.member = (select oid from pg_roles where rolname = current_user) \
         where r.rolname ~ '^t[0-9a-z]{26}_' and substr(r.rolname, 29) = any($1) \
           and not exists (select from control.tenants t where t.id = substr(r.rolname, 2, 26)) \
           and not exists (select from pg_database d join pg_roles o on o.oid = d.datdba \
                           where o.rolname = substr(r.rolname, 1, 27) || '_owner')",
    )
    .bind(TenantLogin::ALL.map(TenantLogin::kind).to_vec())
    .fetch_all(conn)
    .await?;
    Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
}
