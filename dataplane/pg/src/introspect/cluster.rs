//! Roles, memberships and the database of one tenant.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::Ulid;
use rowgate_core::role::{SHARED_ROLE, TEMPLATE_DATABASE, TenantLogin};
use sqlx::PgConnection;
use sqlx::types::Json;

use super::{acl, oid};
use crate::failure::PgError;
use crate::introspect::actual::{Acl, Database, Membership, Role};

/// `$1`: the logins and `datalake_user`; `$2`: the keys login, whose roles are those it administers.
macro_rules! with_mine {
    ($rest:literal) => {
        concat!(
            "with mine as materialized (select oid from pg_roles where rolname = any($1) union ",
            "select m.roleid from pg_auth_members m ",
            "where m.member = (select oid from pg_roles where rolname = $2) and m.admin_option) ",
            $rest
        )
    };
}

fn named(tenant: &Ulid) -> Vec<String> {
    let logins = TenantLogin::ALL.map(|login| login.role(tenant));
    logins.into_iter().chain([SHARED_ROLE.to_owned()]).collect()
}

#[derive(sqlx::FromRow)]
struct RoleRow {
    name: String,
    login: bool,
    superuser: bool,
    create_role: bool,
    create_db: bool,
    inherit: bool,
    replication: bool,
    bypass_rls: bool,
    connection_limit: i32,
    valid_until: Option<i64>,
    is_expired: bool,
    settings: Vec<String>,
    held: bool,
}

/// `database`: the tenant's. What a plan takes away before it drops a role are rights on the tenant's own schemas, relations,
/// routines and database, and policies. Settings are read of the tenant's own roles and no others: `datalake_user` never logs in, so that
/// its settings mean nothing, and code of any tenant that runs as it may give it some; and the owner of a database may give
/// that 100 MB of them.
pub(super) async fn roles(
    conn: &mut PgConnection,
    tenant: &Ulid,
    database: &str,
) -> Result<BTreeMap<String, Role>, PgError> {
    let rows: Vec<RoleRow> = sqlx::query_as(with_mine!(
        "select r.rolname::text as name, r.rolcanlogin as login, r.rolsuper as superuser, \
                r.rolcreaterole as create_role, r.rolcreatedb as create_db, r.rolinherit as inherit, \
                r.rolreplication as replication, r.rolbypassrls as bypass_rls, r.rolconnlimit as connection_limit, \
                case when isfinite(r.rolvaliduntil) then (extract(epoch from r.rolvaliduntil) * 1000000)::int8 end as valid_until, \
                coalesce(r.rolvaliduntil <= clock_timestamp(), false) as is_expired, \
                coalesce(s.settings[:50], '{}') as settings, \
                case when starts_with(r.rolname, 'key_') then true \
                     when starts_with(r.rolname, 'set_') then not exists ( \
                         select from pg_auth_members m join pg_roles k on k.oid = m.member \
                         where m.roleid = r.oid and starts_with(k.rolname, 'key_')) \
                     else starts_with(r.rolname, 't') and not exists (select from pg_database where datname = $3) \
                end and exists (select from pg_shdepend d left join pg_database own on own.datname = $3 \
                    where d.refclassid = 'pg_authid'::regclass and d.refobjid = r.oid \
                      and case when d.deptype = 'o' then d.classid <> 'pg_auth_members'::regclass \
                               when d.classid = 'pg_database'::regclass then d.objid is distinct from own.oid \
                                   and d.objid <> (select oid from pg_database where datname = current_database()) \
                               when d.dbid = 0 then false \
                               else d.dbid is distinct from own.oid \
                                   or d.classid not in ('pg_class'::regclass, 'pg_namespace'::regclass, \
                                                        'pg_proc'::regclass, 'pg_policy'::regclass, \
                                                        'pg_default_acl'::regclass) end) as held \
         from pg_roles r \
         left join (select s.setrole, array_agg(left(coalesce(d.datname || '/', '') || setting, 200)) as settings \
                    from pg_db_role_setting s left join pg_database d on d.oid = s.setdatabase \
                    cross join unnest(case when pg_column_size(s.setconfig) < 65536 then s.setconfig \
                                           else array['settings=too long'] end) setting \
                    where s.setrole = any(array(select mine.oid from mine join pg_roles m on m.oid = mine.oid \
                                                where m.rolname <> $4)) \
                    group by s.setrole) s on s.setrole = r.oid \
         where r.oid = any(array(select oid from mine))"
    ))
    .bind(named(tenant))
    .bind(TenantLogin::Keys.role(tenant))
    .bind(database)
    .bind(SHARED_ROLE)
    .fetch_all(conn)
    .await?;
    let role = |row: RoleRow| {
        let role = Role {
            login: row.login,
            superuser: row.superuser,
            create_role: row.create_role,
            create_db: row.create_db,
            inherit: row.inherit,
            replication: row.replication,
            bypass_rls: row.bypass_rls,
            connection_limit: row.connection_limit,
            valid_until: row.valid_until,
            is_expired: row.is_expired,
            settings: row.settings.into_iter().collect(),
            held: row.held,
        };
        (row.name, role)
    };
    Ok(rows.into_iter().map(role).collect())
}

#[derive(sqlx::FromRow)]
struct MembershipRow {
    role: String,
    member: String,
    grantor: String,
    admin: bool,
    inherit: bool,
    set: bool,
}

pub(super) async fn memberships(
    conn: &mut PgConnection,
    tenant: &Ulid,
) -> Result<BTreeSet<Membership>, PgError> {
    // two look-ups in indexes: with an OR, or a join, every membership of the cluster would be read. Names by joins, because
    // pg_get_userbyid does not know a role of another tenant that was dropped since the snapshot
    let rows: Vec<MembershipRow> = sqlx::query_as(with_mine!(
        ", ours as materialized ( \
             select m.* from pg_auth_members m where m.roleid = any(array(select oid from mine)) union all \
             select m.* from pg_auth_members m where m.member = any(array(select oid from mine))) \
         select r.rolname::text as role, member.rolname::text as member, grantor.rolname::text as grantor, \
                m.admin_option as admin, m.inherit_option as inherit, m.set_option as set \
         from ours m \
         join pg_roles r on r.oid = m.roleid \
         join pg_roles member on member.oid = m.member \
         join pg_roles grantor on grantor.oid = m.grantor"
    ))
    .bind(named(tenant))
    .bind(TenantLogin::Keys.role(tenant))
    .fetch_all(conn)
    .await?;
    let membership = |row: MembershipRow| Membership {
        role: row.role,
        member: row.member,
        grantor: row.grantor,
        admin: row.admin,
        inherit: row.inherit,
        set: row.set,
    };
    Ok(rows.into_iter().map(membership).collect())
}

#[derive(sqlx::FromRow)]
struct DatabaseRow {
    id: i64,
    owner: String,
    owner_is_superuser: bool,
    grants_owner: bool,
    acl: Json<Acl>,
}

pub(super) async fn database(conn: &mut PgConnection, name: &str) -> Result<Option<Database>, PgError> {
    let row: Option<DatabaseRow> = sqlx::query_as(concat!(
        "select d.oid::int8 as id, o.rolname::text as owner, o.rolsuper as owner_is_superuser, \
         pg_has_role(d.datdba, 'USAGE WITH ADMIN OPTION') as grants_owner, ",
        acl!("d.datacl", "'d'", "d.datdba"),
        " as acl from pg_database d join pg_roles o on o.oid = d.datdba where d.datname = $1"
    ))
    .bind(name)
    .fetch_optional(conn)
    .await?;
    let database = |row: DatabaseRow| {
        Ok(Database {
            oid: oid(row.id)?,
            owner: row.owner,
            owner_is_superuser: row.owner_is_superuser,
            grants_owner: row.grants_owner,
            acl: row.acl.0,
        })
    };
    row.map(database).transpose()
}

/// Other databases which the owner of `database` owns, or in which it owns something.
///
/// # Errors
/// As PostgreSQL gives them.
pub async fn others_of_owner(conn: &mut PgConnection, database: &str) -> Result<Vec<String>, PgError> {
    let others = "select other.datname::text from pg_database d join pg_database other on other.oid <> d.oid \
                  where d.datname = $1 and (other.datdba = d.datdba or other.oid in ( \
                      select s.dbid from pg_shdepend s where s.refclassid = 'pg_authid'::regclass \
                      and s.refobjid = d.datdba and s.deptype = 'o'))";
    Ok(sqlx::query_scalar(others).bind(database).fetch_all(conn).await?)
}

/// A superuser's: nobody else can have put anything into it.
pub(super) async fn has_template(conn: &mut PgConnection) -> Result<bool, PgError> {
    let has = "select exists (select from pg_database d join pg_roles o on o.oid = d.datdba \
                              where d.datname = $1 and d.datistemplate and o.rolsuper)";
    Ok(sqlx::query_scalar(has).bind(TEMPLATE_DATABASE).fetch_one(conn).await?)
}
