//! A database that was there before: its owner is the application's role, which `t<id>_owner` becomes and from which it inherits nothing.

use std::collections::BTreeSet;

use rowgate_core::role::TenantLogin;
use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{Cluster, Database, Role};
use rowgate_sql::ddl::grants::{self, Target};
use rowgate_sql::ddl::{records, roles};
use rowgate_sql::text::Ident;

use super::ident;
use crate::desired::Desired;
use crate::plan::{As, Finding, Op, Statement};

/// Whether it can be adopted, and if not, what to change; the lines for a DBA change nothing when they are run again.
pub(crate) fn judge(desired: &Desired, actual: &Cluster, operator: &str) -> Result<String, Finding> {
    let name = desired.database.as_str();
    let Some(Database { owner, .. }) = &actual.database else {
        let message = format!(
            "database {name} does not exist on the server; create it, or leave out database.create and let Rowgate make it"
        );
        return Err(Finding::new(Reason::SourceNotFound, message));
    };
    let there = actual.database.as_ref().expect("it was read just now");
    if TenantLogin::of_role(owner).is_some() || owner == operator {
        let message = format!(
            "database {name} belongs to {owner}, which is Rowgate's; set database.name to another one"
        );
        return Err(Finding::new(Reason::Taken, message));
    }
    if there.owner_is_superuser {
        let message = format!(
            "database {name} belongs to {owner}, a superuser, as whom Rowgate runs no statement; a DBA can run: alter database {} owner to the role that owns the application's tables;",
            quoted(name)
        );
        return Err(Finding::new(Reason::NotOwned, message));
    }
    if !there.grants_owner {
        let message = format!(
            "Rowgate's login {operator} may not grant {owner}, which owns database {name}; a DBA can run: grant {} to {} with admin true, inherit false, set false;",
            quoted(owner),
            quoted(operator)
        );
        return Err(Finding::new(Reason::RightsMissing, message));
    }
    Ok(owner.clone())
}

/// Of an owner that owns something in the database of a Tenant in another namespace.
pub(crate) fn is_shared(owner: &str) -> Finding {
    let message = format!(
        "the database belongs to {owner}, which also owns things in the database of a Tenant in another namespace; give this database, and what {owner} owns in it, to a role of its own"
    );
    Finding::new(Reason::Taken, message)
}

/// The login of the owner can enter the database, or a DBA lets it; PUBLIC may, unless somebody took that away.
pub(crate) fn enters(desired: &Desired, actual: &Cluster) -> Result<(), Finding> {
    let login = TenantLogin::Owner.role(&desired.tenant);
    let has = |role: &str| {
        let acl = actual.database.as_ref().and_then(|there| there.acl.get(role));
        acl.is_some_and(|it| it.iter().any(|privilege| privilege.trim_end_matches('*') == "CONNECT"))
    };
    if !desired.is_adopted || has("public") || has(&login) {
        return Ok(());
    }
    let message = format!(
        "PUBLIC may not connect to database {}; a DBA can run: grant connect on database {} to {};",
        desired.database.as_str(),
        quoted(desired.database.as_str()),
        quoted(&login)
    );
    Err(Finding::new(Reason::RightsMissing, message))
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The setting by which sessions of the login begin as the owner.
fn begins(desired: &Desired) -> String {
    format!("{}/role={}", desired.database.as_str(), desired.owner)
}

/// The role as it is but for that setting.
pub(super) fn without_setting(desired: &Desired, present: &Role) -> Role {
    let settings = match desired.is_adopted {
        true => &present.settings - &BTreeSet::from([begins(desired)]),
        false => present.settings.clone(),
    };
    Role { settings, ..present.clone() }
}

/// What makes sessions of the login begin as the owner, which it is a member of by now. `is_repaired`: its settings are reset before.
pub(super) fn begin(desired: &Desired, actual: &Cluster, is_repaired: bool) -> Option<Op> {
    let name = TenantLogin::Owner.role(&desired.tenant);
    let has = |role: &Role| role.settings.contains(&begins(desired));
    if !desired.is_adopted || (!is_repaired && actual.roles.get(&name).is_some_and(has)) {
        return None;
    }
    let (role, owner): (Ident, Ident) = (ident(&name), ident(&desired.owner));
    let begin = vec![roles::begin_as(&role, &desired.database, &owner).into()];
    Some(Op::new("sessions of the owner's login begin as the owner", As::Operator, begin))
}

/// Schema `dl` goes, with what is recorded there.
#[must_use]
pub(crate) fn schema_removal() -> [Op; 1] {
    [Op::new("drop schema dl", As::Records, records::drop_schema().map(Statement::from).into())]
}

/// What the tenant's roles may do with the database goes; that of the session comes last.
#[must_use]
pub(crate) fn leave(desired: &Desired, actual: &Cluster) -> Option<Op> {
    let database = Target::Database(desired.database.clone());
    let login = TenantLogin::Owner.role(&desired.tenant);
    let acl = actual.database.iter().flat_map(|there| &there.acl);
    let mut ours: Vec<_> = acl.filter(|(role, _)| actual.roles.contains_key(*role)).collect();
    ours.sort_by_key(|(role, _)| **role == login);
    let revokes = ours.into_iter().flat_map(|(role, privileges)| {
        let revoke = |privilege: &String| grants::revoke(privilege.trim_end_matches('*'), &database, &[role]);
        privileges.iter().filter_map(revoke).map(Statement::from).collect::<Vec<_>>()
    });
    let revokes: Vec<Statement> = revokes.collect();
    (!revokes.is_empty()).then(|| Op::new("the tenant's roles leave the database", As::Owner, revokes))
}
