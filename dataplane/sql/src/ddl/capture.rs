//! Capture of row changes: four triggers of a table, and of each of its partitions, that run `dl.capture` for each statement.

use super::triggers;
use crate::text::{Ident, Sql};

/// One trigger of a captured table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trigger {
    pub name: &'static str,
    /// `pg_trigger.tgtype`.
    pub kind: i16,
    when: &'static str,
}

/// What they run, by `regprocedure` text.
pub const FUNCTION: &str = "dl.capture()";

/// A trigger with transition tables is for one kind of command. Their names come last, though all of them run after the rows are
/// written: those of a tenant may still write other rows, which is a statement of its own.
pub const TRIGGERS: [Trigger; 4] = [
    Trigger { name: "~dl_capture_insert", kind: 4, when: " after insert on " },
    Trigger { name: "~dl_capture_update", kind: 16, when: " after update on " },
    Trigger { name: "~dl_capture_delete", kind: 8, when: " after delete on " },
    Trigger { name: "~dl_capture_truncate", kind: 32, when: " after truncate on " },
];

/// Makes one trigger, which fires whatever `session_replication_role` says. `key`: the columns of the primary key.
#[must_use]
pub fn create(schema: &Ident, table: &Ident, trigger: &Trigger, key: &[Ident]) -> [Sql; 2] {
    let mut create = Sql::new();
    create.lit("create trigger \"").lit(trigger.name).lit("\"").lit(trigger.when);
    create.ident(schema).lit(".").ident(table);
    create.lit(match trigger.kind {
        4 => " referencing new table as new_rows",
        16 => " referencing old table as old_rows new table as new_rows",
        8 => " referencing old table as old_rows",
        _ => "",
    });
    create.lit(" for each statement execute function dl.capture(");
    for (n, column) in key.iter().enumerate() {
        create.lit(if n == 0 { "" } else { ", " }).literal(column.as_str());
    }
    create.lit(")");
    [create, triggers::enable_always(schema, table, trigger.name)]
}

#[must_use]
pub fn drop(schema: &Ident, table: &Ident, trigger: &Trigger) -> Sql {
    triggers::drop(schema, table, trigger.name)
}
