//! GRANT and REVOKE of one privilege on one object.

use crate::text::{Ident, Sql};

/// What a privilege is on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    Database(Ident),
    Schema(Ident),
    /// A table or view as a whole.
    Relation(Ident, Ident),
    /// Columns of a table or view. Every read, create and update right is one of these, so that a column added later
    /// is closed until it is granted.
    Columns(Ident, Ident, Vec<Ident>),
    Sequence(Ident, Ident),
    /// As `regprocedure` prints it with only `pg_catalog` in the search path.
    Routine(String),
}

/// Every privilege that stands in an ACL of PostgreSQL 16 to 18.
const PRIVILEGES: [&str; 13] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "TRUNCATE",
    "REFERENCES",
    "TRIGGER",
    "MAINTAIN",
    "USAGE",
    "CREATE",
    "CONNECT",
    "TEMPORARY",
    "EXECUTE",
];

/// `grant <privilege> on <target> to <roles>`; `None` for a privilege that PostgreSQL does not know.
#[must_use]
pub fn grant(privilege: &str, target: &Target, roles: &[&str]) -> Option<Sql> {
    let mut sql = Sql::new();
    sql.lit("grant ");
    on(&mut sql, privilege, target)?;
    sql.lit(" to ");
    grantees(&mut sql, roles)?;
    Some(by_owner(sql, target))
}

/// `revoke <privilege> on <target> from <roles>`, the grant option with it, and what was granted by it.
#[must_use]
pub fn revoke(privilege: &str, target: &Target, roles: &[&str]) -> Option<Sql> {
    let mut sql = Sql::new();
    sql.lit("revoke ");
    on(&mut sql, privilege, target)?;
    sql.lit(" from ");
    grantees(&mut sql, roles)?;
    sql.lit(" cascade");
    Some(by_owner(sql, target))
}

/// What the owner's future objects (those in `schema`; `None`: all) give to `role` by default: nothing.
#[must_use]
pub fn revoke_default(object_type: DefaultFor, schema: Option<&Ident>, role: &str) -> Option<Sql> {
    let mut sql = Sql::new();
    sql.lit("alter default privileges ");
    if let Some(schema) = schema {
        sql.lit("in schema ").ident(schema).lit(" ");
    }
    sql.lit("revoke all on ").lit(object_type.as_str());
    sql.lit(" from ");
    grantee(&mut sql, role)?;
    Some(sql)
}

/// What stands in schema `dl` is its owner's to grant, but for what captures rows.
fn by_owner(mut sql: Sql, target: &Target) -> Sql {
    let is_in = match target {
        Target::Database(_) => false,
        Target::Schema(schema)
        | Target::Relation(schema, _)
        | Target::Columns(schema, ..)
        | Target::Sequence(schema, _) => schema.as_str() == "dl",
        Target::Routine(signature) => signature.starts_with("dl.") && !signature.starts_with("dl.capture"),
    };
    if is_in {
        sql.of_records();
    }
    sql
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultFor {
    Tables,
    Sequences,
    Routines,
    Types,
    Schemas,
    /// PostgreSQL 18.
    LargeObjects,
}

impl DefaultFor {
    /// As `alter default privileges` says it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            DefaultFor::Tables => "tables",
            DefaultFor::Sequences => "sequences",
            DefaultFor::Routines => "routines",
            DefaultFor::Types => "types",
            DefaultFor::Schemas => "schemas",
            DefaultFor::LargeObjects => "large objects",
        }
    }

    /// From `pg_default_acl.defaclobjtype`.
    #[must_use]
    pub fn from_letter(letter: char) -> Option<DefaultFor> {
        Some(match letter {
            'r' => DefaultFor::Tables,
            'S' => DefaultFor::Sequences,
            'f' => DefaultFor::Routines,
            'T' => DefaultFor::Types,
            'n' => DefaultFor::Schemas,
            'L' => DefaultFor::LargeObjects,
            _ => return None,
        })
    }
}

fn on(sql: &mut Sql, privilege: &str, target: &Target) -> Option<()> {
    let privilege = PRIVILEGES.iter().find(|known| **known == privilege)?;
    sql.lit(privilege);
    match target {
        Target::Database(name) => sql.lit(" on database ").ident(name),
        Target::Schema(name) => sql.lit(" on schema ").ident(name),
        Target::Relation(schema, name) => sql.lit(" on ").ident(schema).lit(".").ident(name),
        Target::Sequence(schema, name) => sql.lit(" on sequence ").ident(schema).lit(".").ident(name),
        Target::Routine(signature) => sql.lit(" on routine ").owners(signature),
        Target::Columns(schema, name, columns) => {
            for (i, column) in columns.iter().enumerate() {
                sql.lit(if i == 0 { " (" } else { ", " }).ident(column);
            }
            sql.lit(") on ").ident(schema).lit(".").ident(name)
        }
    };
    Some(())
}

fn grantees(sql: &mut Sql, roles: &[&str]) -> Option<()> {
    for (i, role) in roles.iter().enumerate() {
        if 0 < i {
            sql.lit(", ");
        }
        grantee(sql, role)?;
    }
    Some(())
}

fn grantee(sql: &mut Sql, role: &str) -> Option<()> {
    match role {
        "public" => sql.lit("public"),
        role => sql.ident(&Ident::new(role)?),
    };
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ident(name: &str) -> Ident {
        Ident::new(name).expect("a name")
    }

    #[test]
    fn columns_are_granted_by_name() {
        let target = Target::Columns(ident("shop"), ident("or\"ders"), vec![ident("id"), ident("a b")]);
        let sql = grant("SELECT", &target, &["set_1", "set_2"]).expect("a privilege");
        assert_eq!(
            sql.as_str(),
            "grant SELECT (\"id\", \"a b\") on \"shop\".\"or\"\"ders\" to \"set_1\", \"set_2\""
        );
        assert_eq!(grant("SELECT; drop", &target, &["set_1"]), None);
    }
}
