//! What the triggers of every kind have in common.

use crate::text::{Ident, Sql};

/// Makes a trigger fire whatever `session_replication_role` says.
pub(super) fn enable_always(schema: &Ident, table: &Ident, name: &'static str) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter table ").ident(schema).lit(".").ident(table);
    sql.lit(" enable always trigger \"").lit(name).lit("\"");
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
