//! The tenant's login roles and its database, before anything can be done inside.

use rowgate_core::role::{SHARED_ROLE, TenantLogin};
use rowgate_pg::actual::{Cluster, Role};
use rowgate_sql::ddl::roles::{self, Kind, Membership};
use rowgate_sql::text::Ident;

use super::{As, Op, Statement};
use crate::desired::Desired;

/// Creates what is missing and brings back what was altered. `operator` is the login that runs it.
#[must_use]
pub fn shell(desired: &Desired, actual: &Cluster, operator: &str) -> Vec<Op> {
    let mut ops = Vec::new();
    let logins = logins(desired, actual);
    if !logins.is_empty() {
        ops.push(Op::new("the tenant's login roles", As::Operator, logins));
    }
    if actual.database.is_none() {
        ops.extend(database(desired, operator));
    }
    let strays = strays(desired, actual, operator);
    if !strays.is_empty() {
        ops.push(Op::new("memberships that should not be", As::Operator, strays));
    }
    ops
}

fn logins(desired: &Desired, actual: &Cluster) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    for login in TenantLogin::ALL {
        let name = login.role(&desired.tenant);
        let role = ident(&name);
        let kind = if login == TenantLogin::Keys { Kind::RoleCreator } else { Kind::Login };
        match actual.roles.get(&name) {
            None => {
                statements.push(
                    roles::create(&role, kind, desired.verifiers.get(&name).map(String::as_str)).into(),
                );
            }
            Some(present) => statements.extend(repaired(&role, kind, present)),
        }
    }
    for login in [TenantLogin::Auth, TenantLogin::Sql] {
        let member = login.role(&desired.tenant);
        let there = actual
            .memberships
            .iter()
            .any(|m| m.role == SHARED_ROLE && m.member == member && m.set && !m.inherit && !m.admin);
        if !there {
            statements.push(roles::grant(&ident(SHARED_ROLE), &ident(&member), Membership::Set).into());
        }
    }
    statements
}

/// Statements that bring `present` back to what `kind` is; empty where it is.
pub(super) fn repaired(role: &Ident, kind: Kind, present: &Role) -> Vec<Statement> {
    let wanted = Role {
        login: kind != Kind::Group,
        create_role: kind == Kind::RoleCreator,
        connection_limit: -1,
        settings: present.settings.clone(),
        ..Role::default()
    };
    let mut statements = Vec::new();
    if *present != wanted {
        statements.push(roles::alter(role, kind).into());
    }
    if !present.settings.is_empty() {
        statements.push(roles::reset_settings(role).into());
    }
    statements
}

/// The owner's role is granted to the operator for the one statement that needs it.
fn database(desired: &Desired, operator: &str) -> [Op; 3] {
    let owner = ident(&TenantLogin::Owner.role(&desired.tenant));
    let operator = ident(operator);
    let mut create =
        Op::new("the database", As::Operator, vec![roles::create_database(&desired.database, &owner).into()]);
    create.transaction = false;
    [
        Op::new(
            "become able to give the database away",
            As::Operator,
            vec![roles::grant(&owner, &operator, Membership::Set).into()],
        ),
        create,
        Op::new("give that up again", As::Operator, vec![roles::revoke(&owner, &operator).into()]),
    ]
}

/// Memberships made by hand: anything a tenant's login or `datalake_user` is a member of, or gives, that the design
/// does not know. What another grantor made cannot be taken back here and stays visible as drift.
fn strays(desired: &Desired, actual: &Cluster, operator: &str) -> Vec<Statement> {
    let ours: Vec<String> = TenantLogin::ALL.iter().map(|login| login.role(&desired.tenant)).collect();
    actual
        .memberships
        .iter()
        .filter(|m| m.grantor == operator && !m.admin)
        .filter(|m| m.member == SHARED_ROLE || ours.contains(&m.member) || ours.contains(&m.role))
        .filter(|m| !(m.role == SHARED_ROLE && (m.member == ours[2] || m.member == ours[3])))
        .map(|m| roles::revoke(&ident(&m.role), &ident(&m.member)).into())
        .collect()
}

pub(super) fn ident(name: &str) -> Ident {
    Ident::new(name).expect("a role name of ours fits PostgreSQL")
}
