//! Taking a tenant away: its database with the sessions in it, and every role that was made for it.

use std::collections::BTreeSet;

use rowgate_core::name::Ulid;
use rowgate_core::role::{CONTROL_DATABASE, TenantLogin};
use rowgate_pg::actual::Cluster;
use rowgate_sql::ddl::grants;
use rowgate_sql::ddl::roles::{self, Membership};
use rowgate_sql::text::Ident;

use super::shell::ident;
use super::{As, Op, Statement};

/// Drops what is still there of `tenant`, in an order in which every prefix can be gone on from. `sessions`: the roles
/// that are logged in to the database; `operator`: the login that ends them.
#[must_use]
pub fn removal(
    tenant: &Ulid,
    database: &Ident,
    actual: &Cluster,
    sessions: &BTreeSet<String>,
    operator: &str,
) -> Vec<Op> {
    let mut ops = Vec::new();
    let mut push = |about: &str, login: As, statements: Vec<Statement>| {
        if !statements.is_empty() {
            ops.push(Op::new(about, login, statements));
        }
    };
    let there = |login: &TenantLogin| actual.roles.contains_key(&login.role(tenant));
    let logins: Vec<String> =
        TenantLogin::ALL.iter().filter(|it| there(it)).map(|it| it.role(tenant)).collect();
    let of_keys = |role: &&String| role.starts_with("key_") || role.starts_with("set_");
    let made: Vec<&String> = actual.roles.keys().filter(of_keys).collect();
    let me = ident(operator);
    if actual.database.is_some() {
        // PostgreSQL lets a login end the sessions of the roles whose rights it has, and no others
        let lent = |role: &String| Statement::from(roles::grant(&ident(role), [&me], Membership::Inherit));
        let seated = made.iter().filter(|role| sessions.contains(**role));
        push("become able to end the sessions of keys", As::Keys, seated.map(|role| lent(role)).collect());
        push("become able to drop the database", As::Operator, logins.iter().map(lent).collect());
        push("the database", As::Operator, vec![roles::drop_database(database).into()]);
    }
    push(
        "the roles of keys and permission sets",
        As::Keys,
        made.iter().map(|role| roles::drop(&ident(role)).into()).collect(),
    );
    let keys = TenantLogin::Keys.role(tenant);
    let control = grants::Target::Database(ident(CONTROL_DATABASE));
    let mut last: Vec<Statement> = Vec::new();
    if logins.contains(&keys) {
        last.extend(grants::revoke("CONNECT", &control, &keys).map(Statement::from));
    }
    last.extend(logins.iter().map(|role| Statement::from(roles::drop(&ident(role)))));
    push("the tenant's login roles", As::Operator, last);
    for op in &mut ops {
        op.transaction = op.about != "the database";
    }
    ops
}
