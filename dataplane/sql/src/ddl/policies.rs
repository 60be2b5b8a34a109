//! Row-level security of one table.

use crate::text::{Ident, Sql};

/// A policy as it is asked for. Roles of keys are tested inside the expression, because through a view `TO` would be judged for the view's
/// owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyDef {
    pub name: Ident,
    pub permissive: bool,
    pub command: Command,
    /// For whom it is; empty: PUBLIC.
    pub to: Vec<Ident>,
    /// `None` where the command takes none (INSERT).
    pub using: Option<Condition>,
    pub check: Option<Condition>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Command {
    All,
    Select,
    Insert,
    Update,
    Delete,
}

/// Which rows, for which roles.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// `None`: every role.
    pub roles: Option<Vec<String>>,
    /// Permissive: only these roles. Restrictive: everybody else passes.
    pub permissive: bool,
    pub rows: Rows,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rows {
    All,
    /// The column equals the claim, cast to the column's type; read once per statement.
    Claim {
        column: Ident,
        type_name: String,
        claim: String,
    },
    Literal {
        column: Ident,
        type_name: String,
        value: String,
    },
    /// The tenant's own SQL.
    Expression(String),
}

impl Command {
    /// As `pg_policies.cmd` says it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Command::All => "ALL",
            Command::Select => "SELECT",
            Command::Insert => "INSERT",
            Command::Update => "UPDATE",
            Command::Delete => "DELETE",
        }
    }
}

/// ENABLE: everybody is filtered but the owner of the table. FORCE: the owner, too, and with it every view of the owner, which data planes of
/// version 0.2 rely on.
#[must_use]
pub fn enable(schema: &Ident, table: &Ident, forces_owner: bool) -> Sql {
    let enabled = " enable row level security, ";
    let mut sql = on_table(schema, table, enabled);
    sql.lit(if forces_owner { "force row level security" } else { "no force row level security" });
    sql
}

/// ENABLE, with whatever stands of FORCE.
#[must_use]
pub fn enable_only(schema: &Ident, table: &Ident) -> Sql {
    on_table(schema, table, " enable row level security")
}

#[must_use]
pub fn disable(schema: &Ident, table: &Ident) -> Sql {
    on_table(schema, table, " disable row level security")
}

#[must_use]
pub fn drop(schema: &Ident, table: &Ident, policy: &str) -> Option<Sql> {
    let mut sql = Sql::new();
    sql.lit("drop policy ").ident(&Ident::new(policy)?);
    sql.lit(" on ").ident(schema).lit(".").ident(table);
    Some(sql)
}

/// The same policy for these roles and no others; `public` for PUBLIC.
#[must_use]
pub fn give_to(schema: &Ident, table: &Ident, policy: &Ident, roles: &[&str]) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter policy ").ident(policy).lit(" on ").ident(schema).lit(".").ident(table).lit(" to ");
    for (i, role) in roles.iter().enumerate() {
        sql.lit(if i == 0 { "" } else { ", " });
        match Ident::new(*role).filter(|_| *role != "public") {
            Some(role) => sql.ident(&role),
            None => sql.lit("public"),
        };
    }
    sql
}

#[must_use]
pub fn create(schema: &Ident, table: &Ident, policy: &PolicyDef) -> Sql {
    let mut sql = Sql::new();
    sql.lit("create policy ").ident(&policy.name).lit(" on ").ident(schema).lit(".").ident(table);
    sql.lit(if policy.permissive { "" } else { " as restrictive" });
    sql.lit(match policy.command {
        Command::All => " for all",
        Command::Select => " for select",
        Command::Insert => " for insert",
        Command::Update => " for update",
        Command::Delete => " for delete",
    });
    for (i, role) in policy.to.iter().enumerate() {
        sql.lit(if i == 0 { " to " } else { ", " }).ident(role);
    }
    if let Some(using) = &policy.using {
        sql.lit(" using (");
        condition(&mut sql, using);
        sql.lit(")");
    }
    if let Some(check) = &policy.check {
        sql.lit(" with check (");
        condition(&mut sql, check);
        sql.lit(")");
    }
    sql
}

fn on_table(schema: &Ident, table: &Ident, what: &'static str) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter table ").ident(schema).lit(".").ident(table).lit(what);
    sql
}

fn condition(sql: &mut Sql, condition: &Condition) {
    if let Some(roles) = &condition.roles {
        sql.lit("current_user").lit(if condition.permissive { "" } else { " not" });
        for (i, role) in roles.iter().enumerate() {
            sql.lit(if i == 0 { " in (" } else { ", " }).literal(role);
        }
        // an empty list names nobody; PostgreSQL has no empty IN
        sql.lit(if roles.is_empty() { " in ('')" } else { ")" });
        sql.lit(if condition.permissive { " and (" } else { " or (" });
    }
    match &condition.rows {
        Rows::All => sql.lit("true"),
        Rows::Claim { column, type_name, claim } => {
            // what dl.claim does, without the call: a fifth of what PostgreSQL spends on a row
            sql.ident(column).lit(" = (select c.value::").owners(type_name);
            sql.lit(" from dl.own_claims c where c.name = ").literal(claim).lit(")")
        }
        Rows::Literal { column, type_name, value } => {
            sql.ident(column).lit(" = ").literal(value).lit("::").owners(type_name)
        }
        // a line break ends a trailing comment before the bracket that closes
        Rows::Expression(text) => sql.owners(text).lit("\n"),
    };
    if condition.roles.is_some() {
        sql.lit(")");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_tested_inside_the_expression() {
        let id = |name| Ident::new(name).expect("a name");
        let rows = Rows::Claim { column: id("region"), type_name: "text".into(), claim: "it's".into() };
        let using =
            |permissive| Condition { roles: Some(vec!["key_1".into()]), permissive, rows: rows.clone() };
        let policy = |permissive| PolicyDef {
            name: id("p"),
            permissive,
            command: Command::Select,
            to: Vec::new(),
            using: Some(using(permissive)),
            check: None,
        };
        assert_eq!(
            create(&id("s"), &id("t"), &policy(true)).as_str(),
            "create policy \"p\" on \"s\".\"t\" for select using (current_user in (E'key_1') and \
             (\"region\" = (select c.value::text from dl.own_claims c where c.name = E'it''s')))"
        );
        assert_eq!(
            create(&id("s"), &id("t"), &policy(false)).as_str(),
            "create policy \"p\" on \"s\".\"t\" as restrictive for select using (current_user not in (E'key_1') or \
             (\"region\" = (select c.value::text from dl.own_claims c where c.name = E'it''s')))"
        );
    }
}
