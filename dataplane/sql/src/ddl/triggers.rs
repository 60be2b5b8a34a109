//! What the triggers of every kind have in common.

use crate::text::{Ident, Sql};

/// For whose statements a trigger fires, by `session_replication_role`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firing {
    Always,
    /// For all but writers that replicate: what PostgreSQL gives a new trigger.
    Origin,
    /// For writers that replicate, the apply worker of a subscription among them.
    Replica,
}

impl Firing {
    /// `pg_trigger.tgenabled`.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            Firing::Always => "A",
            Firing::Origin => "O",
            Firing::Replica => "R",
        }
    }
}

/// Makes a trigger fire whatever `session_replication_role` says.
pub(super) fn enable_always(schema: &Ident, table: &Ident, name: &'static str) -> Sql {
    enable(schema, table, name, Firing::Always)
}

/// Of a partitioned table the triggers of its partitions too, where it is a trigger for each row.
pub(super) fn enable(schema: &Ident, table: &Ident, name: &'static str, firing: Firing) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter table ").ident(schema).lit(".").ident(table);
    sql.lit(match firing {
        Firing::Always => " enable always trigger \"",
        Firing::Origin => " enable trigger \"",
        Firing::Replica => " enable replica trigger \"",
    });
    sql.lit(name).lit("\"");
    sql
}

pub(super) fn drop(schema: &Ident, table: &Ident, name: &'static str) -> Sql {
    let mut sql = Sql::new();
    sql.lit("drop trigger \"").lit(name).lit("\" on ").ident(schema).lit(".").ident(table);
    sql
}

/// `pg_trigger.tgargs` of these arguments, in hexadecimal digits.
#[must_use]
pub fn arguments<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
    let bytes = arguments.into_iter().flat_map(|argument| argument.bytes().chain([0]));
    bytes.map(|byte| format!("{byte:02x}")).collect()
}
