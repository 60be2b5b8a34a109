//! Taking a tenant away: its database with the sessions in it, and every role that was made for it.

use std::collections::BTreeSet;

use rowgate_core::name::Ulid;
use rowgate_core::role::{CONTROL_DATABASE, TenantLogin};
use rowgate_pg::introspect::actual::{Cluster, Membership};
use rowgate_sql::ddl::grants;
use rowgate_sql::ddl::roles::{self, Kind};
use rowgate_sql::text::Ident;

use super::roles_and_database::{ident, repaired};
use super::{As, Of, Op, Statement};

/// Drops the database, with the sessions in it. `sessions`: the roles that are logged in to it; `operator`: the login that
/// ends them. Its roles are [`remains`].
#[must_use]
pub fn removal(
    tenant: &Ulid,
    database: &Ident,
    actual: &Cluster,
    sessions: &BTreeSet<String>,
    operator: &str,
) -> Vec<Op> {
    if actual.database.is_none() {
        return Vec::new();
    }
    let mut ops = Vec::new();
    let mut push = |about: &str, login: As, statements: Vec<Statement>| {
        if !statements.is_empty() {
            ops.push(Op::new(about, login, statements));
        }
    };
    let (logins, made) = (logins(tenant, actual), made(actual));
    let me = ident(operator);
    // PostgreSQL lets a login end the sessions of the roles whose rights it has, and no others
    let lent = |role: &String| Statement::from(roles::grant(&ident(role), [&me], roles::Membership::Inherit));
    let seated = made.iter().filter(|role| sessions.contains(*role));
    push("gain the right to end sessions of keys", As::Keys, seated.map(lent).collect());
    push("gain the right to drop the database", As::Operator, logins.iter().map(lent).collect());
    let drop = [roles::end_sessions(database), roles::no_template(database), roles::drop_database(database)];
    push("the database", As::Operator, drop.map(Statement::from).into());
    for op in &mut ops {
        op.transaction = op.about != "the database";
    }
    ops
}

/// Drops what can be dropped of the roles of a tenant whose database is gone, and closes the others: something in another
/// database holds them. `left`: those that PostgreSQL would not drop before.
#[must_use]
pub fn remains(tenant: &Ulid, actual: &Cluster, left: &[Of]) -> Vec<Op> {
    let is_left = |role: &String| {
        actual.roles.get(role).is_some_and(|it| it.held) || left.contains(&Of::Role(role.clone()))
    };
    let (kept, dropped): (Vec<String>, Vec<String>) = made(actual).into_iter().partition(is_left);
    let mut ops = Vec::new();
    let mut push = |about: &str, login: As, statements: Vec<Statement>| {
        if !statements.is_empty() {
            ops.push(Op::new(about, login, statements));
        }
    };
    push("close the roles of keys that cannot be dropped", As::Keys, closed(&kept, actual));
    let drop = |role: &String| Of::Role(role.clone()).says(roles::drop(&ident(role)));
    let drops: Vec<Statement> = dropped.iter().map(drop).collect();
    // once these are gone no role administers theirs
    let keys = TenantLogin::Keys.role(tenant);
    let is_last = |role: &String| *role == keys && !(kept.is_empty() && dropped.is_empty());
    let logins = logins(tenant, actual).into_iter().filter(|role| !is_last(role));
    let (kept, dropped): (Vec<String>, Vec<String>) = logins.partition(is_left);
    push("close the logins that cannot be dropped", As::Operator, closed(&kept, actual));
    if dropped.contains(&keys) {
        let control = grants::Target::Database(ident(CONTROL_DATABASE));
        let revoke = grants::revoke("CONNECT", &control, &[&keys]).map(Statement::from);
        push("revoke its access to the control database", As::Operator, revoke.into_iter().collect());
    }
    let about = "the roles of keys and permission sets";
    let with = |about, login, statements: Vec<Statement>| Op::new(about, login, statements).one_by_one();
    ops.extend((!drops.is_empty()).then(|| with(about, As::Keys, drops)));
    let drops: Vec<Statement> = dropped.iter().map(drop).collect();
    ops.extend((!drops.is_empty()).then(|| with("the tenant's login roles", As::Operator, drops)));
    ops
}

fn logins(tenant: &Ulid, actual: &Cluster) -> Vec<String> {
    let logins = TenantLogin::ALL.iter().map(|it| it.role(tenant));
    logins.filter(|role| actual.roles.contains_key(role)).collect()
}

/// Roles of keys and permission sets.
fn made(actual: &Cluster) -> Vec<String> {
    let of_keys = |role: &&String| role.starts_with("key_") || role.starts_with("set_");
    actual.roles.keys().filter(of_keys).cloned().collect()
}

/// What takes login, password, settings and memberships from those that still have them.
fn closed(kept: &[String], actual: &Cluster) -> Vec<Statement> {
    let attributes = kept.iter().flat_map(|role| repaired(&ident(role), Kind::Group, &actual.roles[role]));
    let concerns = |m: &&Membership| !m.admin && (kept.contains(&m.role) || kept.contains(&m.member));
    let memberships = actual.memberships.iter().filter(concerns);
    let revoked = memberships.map(|m| roles::revoke(&ident(&m.role), [&ident(&m.member)]).into());
    attributes.chain(revoked).collect()
}
