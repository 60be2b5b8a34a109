//! The tenant's login roles and its database, before anything can be done inside.

use std::collections::BTreeSet;

use rowgate_core::name::Ulid;
use rowgate_core::role::{CONTROL_DATABASE, SHARED_ROLE, TEMPLATE_DATABASE, TenantLogin};
use rowgate_pg::introspect::actual::{Cluster, Membership as Member, Role};
use rowgate_sql::ddl::grants;
use rowgate_sql::ddl::roles::{self, Kind, Membership};
use rowgate_sql::text::Ident;

use super::access::foreign;
use super::{As, Op, Statement, differences};
use crate::desired::Desired;

pub(crate) mod adopted;
pub(crate) mod migrations;

/// Creates what is missing and brings back what was altered. `operator` is the login that runs it.
#[must_use]
pub fn roles_and_database(desired: &Desired, actual: &Cluster, operator: &str) -> Vec<Op> {
    let mut ops = Vec::new();
    let strays = strays(desired, actual, operator);
    if !strays.is_empty() {
        ops.push(Op::new("unwanted memberships", As::Operator, strays));
    }
    let logins = logins(desired, actual);
    let is_owner_repaired = owner_is_repaired(desired, actual);
    if !logins.is_empty() {
        ops.push(Op::new("the tenant's login roles", As::Operator, logins));
    }
    ops.extend(adopted::begin(desired, actual, is_owner_repaired));
    if actual.database.is_none() {
        let template = if actual.has_template { TEMPLATE_DATABASE } else { "template0" };
        ops.extend(database(desired, operator, template));
    }
    ops.extend(migrations::changes(desired, actual, operator));
    ops
}

fn owner_is_repaired(desired: &Desired, actual: &Cluster) -> bool {
    let name = TenantLogin::Owner.role(&desired.tenant);
    let present = actual.roles.get(&name).map(|present| adopted::without_setting(desired, present));
    present.is_some_and(|present| !repaired(&ident(&name), Kind::Login, &present).is_empty())
}

fn logins(desired: &Desired, actual: &Cluster) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    for login in TenantLogin::ALL.into_iter().filter(|login| *login != TenantLogin::Migrations) {
        let name = login.role(&desired.tenant);
        let role = ident(&name);
        let kind = match login {
            TenantLogin::Keys => Kind::RoleCreator,
            TenantLogin::Views => Kind::Group,
            _ => Kind::Login,
        };
        match actual.roles.get(&name) {
            None => {
                let verifier = desired.verifiers.get(&name).map(String::as_str);
                let missing = format!("role {name} is missing");
                statements.push(Statement::from(roles::create(&role, kind, verifier)).undoing([missing]));
                if login == TenantLogin::Keys {
                    let control = grants::Target::Database(ident(CONTROL_DATABASE));
                    statements.extend(grants::grant("CONNECT", &control, &[&name]).map(Statement::from));
                }
            }
            Some(present) => {
                let as_planned = match login {
                    TenantLogin::Owner => adopted::without_setting(desired, present),
                    _ => present.clone(),
                };
                statements.extend(repaired(&role, kind, &as_planned));
                let can = || format!("role {name} may create databases");
                let no = || Statement::from(roles::no_create_db(&role)).undoing([can()]);
                statements.extend(present.create_db.then(no));
            }
        }
    }
    if let Some(present) = actual.roles.get(SHARED_ROLE) {
        statements.extend(repaired(&ident(SHARED_ROLE), Kind::Group, present));
    }
    for (role, member, membership) in members(desired, actual) {
        let is_it = |m: &&Member| m.role == role && m.member == member;
        let mut there = actual.memberships.iter().filter(is_it);
        let inherits = membership == Membership::Full;
        if !there.clone().any(|m| m.set && m.inherit == inherits && !m.admin) {
            let grant = Statement::from(roles::grant(&ident(&role), [&ident(&member)], membership));
            let differs = there.next().map(|m| differences::membership(m, true));
            let differs = differs.unwrap_or_else(|| differences::no_membership(&role, &member));
            statements.push(grant.undoing([differs]));
        }
    }
    statements
}

/// Which role which login is a member of. The login of the owner of an adopted database becomes that role and inherits nothing: views of
/// its own would be read with what it inherits. As `t<id>_sql` the login of requests ends the sessions of that role, and brings back its
/// password. The owner of the tables gives views to `t<id>_views`, and goes on changing and dropping them.
fn members(desired: &Desired, actual: &Cluster) -> Vec<(String, String, Membership)> {
    let role = |login: TenantLogin| login.role(&desired.tenant);
    let [auth, sql, login] = [TenantLogin::Auth, TenantLogin::Sql, TenantLogin::Owner].map(role);
    let migrations = role(TenantLogin::Migrations);
    let present = actual.roles.get(&migrations);
    let is_open = present.is_some() && migrations::is_open(desired, present).is_some();
    let shared = SHARED_ROLE.to_owned();
    let mut members = vec![
        (shared.clone(), auth.clone(), Membership::Set),
        (shared, sql.clone(), Membership::Set),
        (sql, auth, Membership::Set),
    ];
    members.push(match desired.is_adopted {
        true => (desired.owner.clone(), login, Membership::Set),
        false => (role(TenantLogin::Views), login, Membership::Full),
    });
    members.extend(is_open.then_some((desired.owner.clone(), migrations, Membership::Full)));
    members
}

/// Statements that bring `present` back to what `kind` is; empty where it is. What only a superuser can take back is
/// left to [`foreign`].
pub(super) fn repaired(role: &Ident, kind: Kind, present: &Role) -> Vec<Statement> {
    if present.superuser {
        return Vec::new();
    }
    let right = present.login == (kind != Kind::Group)
        && present.create_role == (kind == Kind::RoleCreator)
        && !present.inherit
        && present.connection_limit == -1;
    let mut statements: Vec<Statement> = Vec::new();
    if !right {
        statements.push(roles::alter(role, kind).into());
    }
    let databases: BTreeSet<Option<Ident>> = present.settings.iter().map(|it| database_of(it)).collect();
    statements.extend(databases.iter().map(|it| roles::reset_settings(role, it.as_ref()).into()));
    if let Some(first) = statements.first_mut() {
        first.undoes = differences::attributes(role.as_str(), kind, present);
    }
    statements
}

/// The database for which a setting of a role counts; `None`: all.
fn database_of(setting: &str) -> Option<Ident> {
    let name = setting.split('=').next().unwrap_or_default();
    name.rsplit_once('/').and_then(|(database, _)| Ident::new(database))
}

/// The owner's role is granted to the operator for the one statement that needs it.
fn database(desired: &Desired, operator: &str, template: &str) -> [Op; 3] {
    let owner = ident(&TenantLogin::Owner.role(&desired.tenant));
    let operator = ident(operator);
    let create = roles::create_database(&desired.database, &owner, &ident(template));
    let mut create = Op::new("the database", As::Operator, vec![create.into()]);
    create.transaction = false;
    let missing = format!("database {} is missing", desired.database.as_str());
    create.statements.iter_mut().for_each(|it| it.undoes.push(missing.clone()));
    [
        Op::new(
            "gain the right to change the owner of the database",
            As::Operator,
            vec![roles::grant(&owner, [&operator], Membership::Set).into()],
        ),
        create,
        Op::new("give up that right", As::Operator, vec![roles::revoke(&owner, [&operator]).into()]),
    ]
}

/// What lets `t<id>_dl` make schema `dl` its own, and what takes that back: the rights of `owner`, the owner of the database, who gives it
/// the right to connect first.
#[must_use]
pub fn lending(tenant: &Ulid, owner: &str, database: &str) -> [Op; 3] {
    let [owner, records] = [ident(owner), ident(&TenantLogin::Records.role(tenant))];
    let connect = grants::grant("CONNECT", &grants::Target::Database(ident(database)), &[records.as_str()]);
    let lend = roles::grant(&owner, [&records], Membership::Inherit);
    [
        Op::new(
            "let the owner of schema dl connect",
            As::Owner,
            connect.map(Statement::from).into_iter().collect(),
        ),
        Op::new("lend it the rights of the owner of the tables", As::Operator, vec![lend.into()]),
        Op::new("take them back", As::Operator, vec![roles::revoke(&owner, [&records]).into()]),
    ]
}

/// Memberships made by hand with the operator's login: anything a tenant's login or `datalake_user` is a member of, or
/// gives, that the design does not know. What another grantor made is for [`foreign`].
fn strays(desired: &Desired, actual: &Cluster, operator: &str) -> Vec<Statement> {
    let ours: Vec<String> = TenantLogin::ALL.iter().map(|login| login.role(&desired.tenant)).collect();
    let concerns = |m: &&Member| {
        m.member == SHARED_ROLE || m.role == SHARED_ROLE || ours.contains(&m.member) || ours.contains(&m.role)
    };
    let strays = actual
        .memberships
        .iter()
        .filter(|m| m.grantor == operator && concerns(m))
        .filter(|m| !(m.role == SHARED_ROLE && foreign::is_shared_login(&m.member)))
        .filter(|m| {
            !members(desired, actual).iter().any(|(role, member, _)| m.role == *role && m.member == *member)
        });
    let revoke = |m: &Member| {
        let revoke = Statement::from(roles::revoke(&ident(&m.role), [&ident(&m.member)]));
        revoke.undoing([differences::membership(m, false)])
    };
    strays.map(revoke).collect()
}

pub(super) fn ident(name: &str) -> Ident {
    Ident::new(name).expect("a role name of ours fits PostgreSQL")
}
