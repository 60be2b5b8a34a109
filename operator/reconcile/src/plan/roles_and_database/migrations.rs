//! The login of migration tools. Its sessions begin as the owner of the tables, so that what it makes belongs to that role at once.

use std::collections::BTreeSet;

use jiff::Timestamp;
use rowgate_core::name::Ulid;
use rowgate_core::role::TenantLogin;
use rowgate_pg::introspect::actual::{Cluster, Role};
use rowgate_sql::ddl::roles::{self, Kind, Membership};
use rowgate_sql::text::Ident;

use super::{ident, repaired};
use crate::desired::{Desired, MigrationsSpec};
use crate::plan::{As, Op, Statement};

/// What opens it, brings back what was altered, or closes it. The database is there, or is made before.
pub(super) fn changes(desired: &Desired, actual: &Cluster, operator: &str) -> Vec<Op> {
    let name = TenantLogin::Migrations.role(&desired.tenant);
    let present = actual.roles.get(&name);
    match (is_open(desired, present), present) {
        (Some(spec), present) => open(desired, spec, present),
        (None, _) => closing(&desired.tenant, &desired.database, actual, operator),
    }
}

/// What the manifest asks for, until it has expired by PostgreSQL's clock.
pub(crate) fn is_open<'a>(desired: &'a Desired, present: Option<&Role>) -> Option<&'a MigrationsSpec> {
    let spec = desired.migrations.as_ref()?;
    let until = spec.expires_at.map(Timestamp::as_microsecond);
    let has_expired = present.is_some_and(|it| it.is_expired && it.valid_until == until);
    (!has_expired).then_some(spec)
}

fn open(desired: &Desired, spec: &MigrationsSpec, present: Option<&Role>) -> Vec<Op> {
    let role = ident(&TenantLogin::Migrations.role(&desired.tenant));
    let owner = ident(&TenantLogin::Owner.role(&desired.tenant));
    let mut statements: Vec<Statement> = Vec::new();
    let begins = format!("{}/role={}", desired.database.as_str(), owner.as_str());
    let mut settings = BTreeSet::new();
    match present {
        None => statements.push(roles::create(&role, Kind::Login, None).into()),
        Some(present) => {
            settings.clone_from(&present.settings);
            let others = Role { settings: &settings - &BTreeSet::from([begins.clone()]), ..present.clone() };
            let repairs = repaired(&role, Kind::Login, &others);
            if !repairs.is_empty() {
                settings.clear();
            }
            statements.extend(repairs);
        }
    }
    let until = spec.expires_at.map(Timestamp::as_microsecond);
    if present.is_none_or(|it| it.valid_until != until) {
        let text = spec.expires_at.map(|at| at.to_string());
        statements.push(roles::valid_until(&role, text.as_deref()).into());
    }
    let mut ops = Vec::new();
    if !statements.is_empty() {
        ops.push(Op::new("the login of migration tools", As::Operator, statements));
    }
    // a role may be named there only once the login is a member of it
    if !settings.contains(&begins) {
        let begin = vec![
            roles::grant(&owner, [&role], Membership::Full).into(),
            roles::begin_as(&role, &desired.database, &owner).into(),
        ];
        ops.push(Op::new("sessions of migration tools begin as the owner", As::Operator, begin));
    }
    ops
}

/// What closes it, and ends its sessions; nothing, where it is closed or was never made.
pub(crate) fn closing(tenant: &Ulid, database: &Ident, actual: &Cluster, operator: &str) -> Vec<Op> {
    let [owner, name] = [TenantLogin::Owner, TenantLogin::Migrations].map(|login| login.role(tenant));
    if !actual.roles.get(&name).is_some_and(|present| present.login) {
        return Vec::new();
    }
    let (role, me) = (ident(&name), ident(operator));
    let statements = vec![
        roles::alter(&role, Kind::Group).into(),
        roles::reset_settings(&role, Some(database)).into(),
        roles::revoke(&ident(&owner), [&role]).into(),
    ];
    // PostgreSQL lets a login end the sessions of the roles whose rights it has
    let ends = vec![
        roles::grant(&role, [&me], Membership::Inherit).into(),
        roles::end_sessions_of(&role).into(),
        roles::revoke(&role, [&me]).into(),
    ];
    vec![
        Op::new("close the login of migration tools", As::Operator, statements),
        Op::new("end its sessions", As::Operator, ends),
    ]
}
