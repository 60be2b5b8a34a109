//! Roles, memberships, the tenant's database.

use crate::text::{Ident, Sql};

/// What a role may do by itself. Nothing here ever gives SUPERUSER, CREATEDB, REPLICATION or BYPASSRLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// NOLOGIN: `set_<id>`, `t<id>_views`, and a key's role after its revocation.
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

/// `create role` of a key that `auth` may become from the start. Granting it later costs PostgreSQL a walk over every
/// role that the creator administers, 10 ms with 3,000 keys; this costs nothing.
#[must_use]
pub fn create_key(role: &Ident, verifier: &str, auth: &Ident) -> Sql {
    let mut sql = create(role, Kind::Login, Some(verifier));
    // auth is NOINHERIT, so the membership does not inherit; SET is the default
    sql.lit(" role ").ident(auth);
    sql
}

/// Brings a role's attributes back to those of its kind, as far as a login with CREATEROLE alone may. It may not even
/// say NOCREATEDB.
#[must_use]
pub fn alter(role: &Ident, kind: Kind) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter role ").ident(role).lit(match kind {
        Kind::Group => " nologin noinherit nocreaterole password null",
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

/// Until when its password lets it in; `None`: for ever. A time as RFC 3339 writes it.
#[must_use]
pub fn valid_until(role: &Ident, until: Option<&str>) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter role ").ident(role).lit(" valid until ").literal(until.unwrap_or("infinity"));
    sql
}

/// Sessions of `role` in the database begin as `other`, of which it is a member.
#[must_use]
pub fn begin_as(role: &Ident, database: &Ident, other: &Ident) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter role ").ident(role).lit(" in database ").ident(database);
    sql.lit(" set role = ").literal(other.as_str());
    sql
}

/// For a login that has the rights of `role`.
#[must_use]
pub fn end_sessions_of(role: &Ident) -> Sql {
    let mut sql = Sql::new();
    sql.lit("select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity where usename = ");
    sql.literal(role.as_str());
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

/// For the rest of the transaction. Somebody else's GRANT to a role keeps whoever drops it waiting until that transaction
/// ends.
#[must_use]
pub fn seldom_waiting() -> Sql {
    let mut sql = Sql::new();
    sql.lit("set local lock_timeout = '200ms'");
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
    /// Both: the owner of the tables in the role that owns the views which keys reach.
    Full,
}

/// One grant for all members: the walk of [`create_key`] is made once a statement and role.
#[must_use]
pub fn grant<'a>(role: &Ident, members: impl IntoIterator<Item = &'a Ident>, membership: Membership) -> Sql {
    let mut sql = Sql::new();
    sql.lit("grant ").ident(role).lit(" to ");
    list(&mut sql, members);
    sql.lit(match membership {
        Membership::Set => " with admin false, inherit false, set true",
        Membership::Inherit => " with admin false, inherit true, set false",
        Membership::Full => " with admin false, inherit true, set true",
    });
    sql
}

#[must_use]
pub fn revoke<'a>(role: &Ident, members: impl IntoIterator<Item = &'a Ident>) -> Sql {
    let mut sql = Sql::new();
    sql.lit("revoke ").ident(role).lit(" from ");
    list(&mut sql, members);
    sql
}

fn list<'a>(sql: &mut Sql, names: impl IntoIterator<Item = &'a Ident>) {
    for (i, name) in names.into_iter().enumerate() {
        sql.lit(if i == 0 { "" } else { ", " }).ident(name);
    }
}

/// Ends the sessions in a database, of roles whose rights the login has. An open transaction of its owner may hold the row that
/// PostgreSQL keeps of the database, and what alters it would wait without end.
#[must_use]
pub fn end_sessions(database: &Ident) -> Sql {
    let mut sql = Sql::new();
    sql.lit("select count(pg_catalog.pg_terminate_backend(pid)) from pg_catalog.pg_stat_activity ");
    sql.lit("where backend_type = 'client backend' and datname = ").literal(database.as_str());
    sql
}

/// What the owner of a database may have said of it, and PostgreSQL drops no template.
#[must_use]
pub fn no_template(database: &Ident) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter database ").ident(database).lit(" is_template false");
    sql
}

const FORCED: &str = " with (force)";

/// `drop database`, with the sessions in it ended; cannot run in a transaction.
#[must_use]
pub fn drop_database(database: &Ident) -> Sql {
    let mut sql = Sql::new();
    sql.lit("drop database if exists ").ident(database).lit(FORCED);
    sql
}

/// As [`drop_database`], of which it is made, with sessions waited for and autovacuum asked to leave.
#[must_use]
pub fn drop_unforced(forced: &Sql) -> Option<Sql> {
    forced.without_end(FORCED)
}

/// `create database ... owner`; cannot run in a transaction.
#[must_use]
pub fn create_database(database: &Ident, owner: &Ident, template: &Ident) -> Sql {
    let mut sql = Sql::new();
    sql.lit("create database ").ident(database).lit(" owner ").ident(owner);
    sql.lit(" template ").ident(template).lit(" encoding 'UTF8'");
    sql
}
