//! What stands in the way and only a DBA can take back: each with the line to run. None of it is ever tried.

use std::collections::BTreeSet;

use rowgate_core::role::{SHARED_ROLE, TenantLogin};
use rowgate_pg::introspect::actual::{Acl, Cluster, Membership, Role, TenantDb};

use crate::desired::Desired;

/// The role that owns a database owns schema `public` by way of this one.
const DATABASE_OWNER: &str = "pg_database_owner";

/// Whether a plan may grant and revoke on what belongs to `owner`.
pub(in crate::plan) fn is_ours(desired: &Desired, owner: &str) -> bool {
    let ours = [TenantLogin::Records, TenantLogin::Views].map(|login| login.role(&desired.tenant));
    ours.iter().any(|role| role == owner) || owner == desired.owner || owner == DATABASE_OWNER
}

/// A sentence each. `operator` is the login that makes the tenant's roles.
pub(in crate::plan) fn sentences(
    desired: &Desired,
    cluster: &Cluster,
    db: &TenantDb,
    operator: &str,
) -> Vec<String> {
    let logins = TenantLogin::ALL.map(|login| login.role(&desired.tenant));
    let mut sentences = Vec::new();
    for (name, role) in &cluster.roles {
        let by_operator = logins.contains(name);
        sentences.extend(attributes(role, by_operator).map(|(has, line)| {
            format!("role {name} has {has}, which bypasses every policy or grant; a DBA can run: alter role \"{name}\" {line};")
        }));
    }
    let repairable = |m: &&Membership| m.grantor == operator || m.grantor == logins[1];
    for m in cluster.memberships.iter().filter(|m| !repairable(m) && !designed(desired, m, &logins, operator))
    {
        sentences.push(format!(
            "role {} is a member of {}, granted by {}; a DBA can run: revoke \"{}\" from \"{}\" granted by \"{}\";",
            m.member, m.role, m.grantor, m.role, m.member, m.grantor
        ));
    }
    for (kind, name, owner, acl) in objects(desired, db) {
        // what PUBLIC has in a database of others stays
        let reached = reached(acl).filter(|role| !desired.is_adopted || *role != "public");
        sentences.extend(reached.map(|role| {
            format!(
                "{kind} {name} belongs to {owner} and grants rights to {role}; a DBA can run: revoke all on {kind} {name} from {role};"
            )
        }));
    }
    sentences.dedup();
    sentences
}

/// The holders of rights that the tenant's owner cannot revoke.
pub(in crate::plan) fn grantees<'a>(desired: &'a Desired, db: &'a TenantDb) -> BTreeSet<&'a str> {
    objects(desired, db).flat_map(|(.., acl)| acl.keys().map(String::as_str)).collect()
}

/// Kind, name, owner and rights of what does not belong to the tenant's owner.
fn objects<'a>(
    desired: &'a Desired,
    db: &'a TenantDb,
) -> impl Iterator<Item = (&'static str, String, &'a String, &'a Acl)> {
    db.schemas
        .iter()
        .map(|(name, it)| ("schema", format!("\"{name}\""), &it.owner, &it.acl))
        .chain(db.relations.iter().flat_map(|((schema, name), it)| {
            let name = format!("\"{schema}\".\"{name}\"");
            let acls = std::iter::once(&it.acl).chain(it.columns.iter().map(|column| &column.acl));
            acls.map(move |acl| ("table", name.clone(), &it.owner, acl))
        }))
        .chain(db.routines.iter().map(|(name, it)| ("routine", name.clone(), &it.owner, &it.acl)))
        .filter(|(_, _, owner, _)| !is_ours(desired, owner))
}

/// Attributes that the login which made the role cannot take back.
fn attributes(role: &Role, by_operator: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let wrong = [
        (role.superuser, "SUPERUSER", "nosuperuser"),
        (role.bypass_rls, "BYPASSRLS", "nobypassrls"),
        (role.replication, "REPLICATION", "noreplication"),
        (role.create_db && !by_operator, "CREATEDB", "nocreatedb"),
    ];
    wrong.into_iter().filter(|(has, ..)| *has).map(|(_, has, line)| (has, line))
}

/// PostgreSQL's own record that a role was made by another, and the shared role's members of every tenant.
fn designed(desired: &Desired, m: &Membership, logins: &[String], operator: &str) -> bool {
    let maker = m.admin && !m.inherit && !m.set;
    let made = m.role.starts_with("key_") || m.role.starts_with("set_");
    match m.member.as_str() {
        member if member == operator => maker && (m.role == SHARED_ROLE || logins.contains(&m.role)),
        member if member == logins[1] => maker && made,
        member if desired.is_adopted && member == logins[0] && m.role == desired.owner => {
            m.set && !m.inherit && !m.admin
        }
        member => m.role == SHARED_ROLE && is_shared_login(member) && m.set && !m.inherit && !m.admin,
    }
}

/// `t<id>_auth` or `t<id>_sql`, of whichever tenant.
pub(in crate::plan) fn is_shared_login(role: &str) -> bool {
    matches!(TenantLogin::of_role(role), Some(TenantLogin::Auth | TenantLogin::Sql))
}

/// Those whom a key's statement could act as.
fn reached(acl: &Acl) -> impl Iterator<Item = &String> {
    let ours = |role: &&String| {
        *role == "public"
            || *role == SHARED_ROLE
            || ["key_", "set_"].iter().any(|kind| role.starts_with(kind))
            || is_shared_login(role)
    };
    acl.keys().filter(ours)
}
