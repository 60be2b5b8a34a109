//! Roles, memberships and the database of one tenant.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::Ulid;
use rowgate_core::role::{SHARED_ROLE, TenantLogin};
use sqlx::PgConnection;
use sqlx::types::Json;

use super::{acl, oid};
use crate::actual::{Acl, Database, Membership, Role};
use crate::failure::PgError;

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
    settings: Vec<String>,
    owns: bool,
}

pub(super) async fn roles(conn: &mut PgConnection, tenant: &Ulid) -> Result<BTreeMap<String, Role>, PgError> {
    let rows: Vec<RoleRow> = sqlx::query_as(with_mine!(
        "select r.rolname::text as name, r.rolcanlogin as login, r.rolsuper as superuser, \
                r.rolcreaterole as create_role, r.rolcreatedb as create_db, r.rolinherit as inherit, \
                r.rolreplication as replication, r.rolbypassrls as bypass_rls, r.rolconnlimit as connection_limit, \
                coalesce(s.settings, '{}') as settings, \
                starts_with(r.rolname, 'key_') and exists (select from pg_shdepend d \
                    where d.refclassid = 'pg_authid'::regclass and d.refobjid = r.oid and d.deptype = 'o') as owns \
         from pg_roles r \
         left join (select s.setrole, array_agg(coalesce(d.datname || '/', '') || setting) as settings \
                    from pg_db_role_setting s left join pg_database d on d.oid = s.setdatabase \
                    cross join unnest(s.setconfig) setting group by s.setrole) s on s.setrole = r.oid \
         where r.oid = any(array(select oid from mine))"
    ))
    .bind(named(tenant))
    .bind(TenantLogin::Keys.role(tenant))
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
            settings: row.settings.into_iter().collect(),
            owns: row.owns,
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
    // two look-ups in indexes: with an OR, or a join, every membership of the cluster would be read
    let rows: Vec<MembershipRow> = sqlx::query_as(with_mine!(
        ", ours as (select m.* from pg_auth_members m where m.roleid = any(array(select oid from mine)) union all \
                    select m.* from pg_auth_members m where m.member = any(array(select oid from mine))) \
         select pg_get_userbyid(m.roleid)::text as role, pg_get_userbyid(m.member)::text as member, \
                pg_get_userbyid(m.grantor)::text as grantor, m.admin_option as admin, m.inherit_option as inherit, \
                m.set_option as set \
         from ours m"
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

pub(super) async fn database(conn: &mut PgConnection, name: &str) -> Result<Option<Database>, PgError> {
    let row: Option<(i64, String, Json<Acl>)> = sqlx::query_as(concat!(
        "select d.oid::int8, pg_get_userbyid(d.datdba)::text, ",
        acl!("d.datacl", "'d'", "d.datdba"),
        " from pg_database d where d.datname = $1"
    ))
    .bind(name)
    .fetch_optional(conn)
    .await?;
    row.map(|(id, owner, Json(acl))| Ok(Database { oid: oid(id)?, owner, acl })).transpose()
}
