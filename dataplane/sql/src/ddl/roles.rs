//! Roles, memberships, the tenant's database.

use crate::text::{Ident, Sql};

/// What a role may do by itself. Nothing here ever gives SUPERUSER, CREATEDB, REPLICATION or BYPASSRLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// NOLOGIN: `set_<id>`, and a key's role after its revocation.
    Group,
    /// LOGIN NOINHERIT.
    Login,
    /// LOGIN NOINHERIT CREATEROLE: `t<id>_keys`.
    RoleCreator,
}

/// `create role`; `verifier` is a SCRAM verifier computed by us, never a password.
#[must_use]
pub fn create(role: &Ident, kind: Kind, verifier: Option<&str>) -> Sql {
    let mut sql = Sql::new();
    sql.lit("create role ").ident(role).lit(match kind {
        Kind::Group => " nologin noinherit",
        Kind::Login => " login noinherit",
        Kind::RoleCreator => " login noinherit createrole",
    });
    if let Some(verifier) = verifier {
        sql.lit(" password ").literal(verifier);
    }
    sql
}

/// Brings a role's attributes back to those of its kind, as far as a login with CREATEROLE alone may. It may not even
/// say NOCREATEDB.
#[must_use]
pub fn alter(role: &Ident, kind: Kind) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter role ").ident(role).lit(match kind {
        Kind::Group => " nologin noinherit nocreaterole",
        Kind::Login => " login noinherit nocreaterole",
        Kind::RoleCreator => " login noinherit createrole",
    });
    sql.lit(" connection limit -1");
    sql
}

/// For a login that has CREATEDB itself.
#[must_use]
pub fn no_create_db(role: &Ident) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter role ").ident(role).lit(" nocreatedb");
    sql
}

/// Gives a role its password's verifier again.
#[must_use]
pub fn set_verifier(role: &Ident, verifier: &str) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter role ").ident(role).lit(" password ").literal(verifier);
    sql
}

/// Takes back what `alter role ... [in database ...] set` gave.
#[must_use]
pub fn reset_settings(role: &Ident, database: Option<&Ident>) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter role ").ident(role);
    if let Some(database) = database {
        sql.lit(" in database ").ident(database);
    }
    sql.lit(" reset all");
    sql
}

#[must_use]
pub fn drop(role: &Ident) -> Sql {
    let mut sql = Sql::new();
    sql.lit("drop role if exists ").ident(role);
    sql
}

/// How a member has a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Membership {
    /// May become the role and inherits nothing: `t<id>_auth` in a key's role.
    Set,
    /// Inherits the role's grants and cannot become it: a key's role in its `set_<id>`.
    Inherit,
}

#[must_use]
pub fn grant(role: &Ident, member: &Ident, membership: Membership) -> Sql {
    let mut sql = Sql::new();
    sql.lit("grant ").ident(role).lit(" to ").ident(member).lit(match membership {
        Membership::Set => " with admin false, inherit false, set true",
        Membership::Inherit => " with admin false, inherit true, set false",
    });
    sql
}

#[must_use]
pub fn revoke(role: &Ident, member: &Ident) -> Sql {
    let mut sql = Sql::new();
    sql.lit("revoke ").ident(role).lit(" from ").ident(member);
    sql
}

/// `create database ... owner`; cannot run in a transaction.
#[must_use]
pub fn create_database(database: &Ident, owner: &Ident) -> Sql {
    let mut sql = Sql::new();
    sql.lit("create database ").ident(database).lit(" owner ").ident(owner);
    sql.lit(" template template0 encoding 'UTF8'");
    sql
}
