//! Capture of row changes: four triggers of a table, and of each of its partitions, that run `dl.capture` for each statement; and
//! where a subscription of logical replication writes the table, one for each row, as its apply worker runs no others.

use super::triggers::{self, Firing};
use crate::text::{Ident, Sql};

/// One trigger of a captured table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trigger {
    pub name: &'static str,
    /// `pg_trigger.tgtype`.
    pub kind: i16,
    /// What it runs, by `regprocedure` text.
    pub function: &'static str,
    when: &'static str,
    /// For each statement or row.
    each: &'static str,
}

const fn each_statement(name: &'static str, kind: i16, when: &'static str) -> Trigger {
    let each = " for each statement execute function dl.capture(";
    Trigger { name, kind, function: "dl.capture()", when, each }
}

/// A trigger with transition tables is for one kind of command. Their names come last, though all of them run after the rows are
/// written: those of a tenant may still write other rows, which is a statement of its own.
pub const TRIGGERS: [Trigger; 4] = [
    each_statement("~dl_capture_insert", 4, " after insert on "),
    each_statement("~dl_capture_update", 16, " after update on "),
    each_statement("~dl_capture_delete", 8, " after delete on "),
    each_statement("~dl_capture_truncate", 32, " after truncate on "),
];

/// PostgreSQL makes it for each partition as well.
pub const OF_ROWS: Trigger = Trigger {
    name: "~dl_capture_row",
    kind: 29,
    function: "dl.capture_row()",
    when: " after insert or update or delete on ",
    each: " for each row execute function dl.capture_row(",
};

/// By `regprocedure` text, as `pg_get_functiondef` prints them. They belong to the owner of the tables: the JSON of a row may run casts of the tenant's.
pub const FUNCTIONS: [(&str, &str); 2] = [
    ("dl.capture()", include_str!("capture/capture.sql")),
    ("dl.capture_row()", include_str!("capture/capture_row.sql")),
];

/// Makes one of [`FUNCTIONS`], which PUBLIC may not call. `owner` may make something in schema `dl` for these four statements of one transaction.
#[must_use]
pub fn function(signature: &'static str, definition: &'static str, owner: &Ident) -> [Sql; 4] {
    let (mut allow, mut make, mut close, mut forbid) = (Sql::new(), Sql::new(), Sql::new(), Sql::new());
    allow.lit("grant create on schema dl to ").ident(owner).of_records();
    make.lit(definition);
    close.lit("revoke all on function ").lit(signature).lit(" from public");
    forbid.lit("revoke create on schema dl from ").ident(owner).of_records();
    [allow, make, close, forbid]
}

/// When it fires. Where rows that are replicated have a trigger of their own, those of their statements leave them to it, so that
/// no change is captured twice; a truncate has no rows.
#[must_use]
pub fn firing(trigger: &Trigger, is_replicated: bool) -> Firing {
    match (trigger.kind, is_replicated) {
        (29, _) => Firing::Replica,
        (32, _) | (_, false) => Firing::Always,
        (_, true) => Firing::Origin,
    }
}

/// Makes one trigger. `key`: the columns of the primary key.
#[must_use]
pub fn create(
    schema: &Ident,
    table: &Ident,
    trigger: &Trigger,
    key: &[Ident],
    is_replicated: bool,
) -> Vec<Sql> {
    let mut create = Sql::new();
    create.lit("create trigger \"").lit(trigger.name).lit("\"").lit(trigger.when);
    create.ident(schema).lit(".").ident(table);
    create.lit(match trigger.kind {
        4 => " referencing new table as new_rows",
        16 => " referencing old table as old_rows new table as new_rows",
        8 => " referencing old table as old_rows",
        _ => "",
    });
    create.lit(trigger.each);
    for (n, column) in key.iter().enumerate() {
        create.lit(if n == 0 { "" } else { ", " }).literal(column.as_str());
    }
    create.lit(")");
    match firing(trigger, is_replicated) {
        Firing::Origin => vec![create],
        firing => vec![create, triggers::enable(schema, table, trigger.name, firing)],
    }
}

/// Makes a trigger that is there fire when it should.
#[must_use]
pub fn enable(schema: &Ident, table: &Ident, trigger: &Trigger, is_replicated: bool) -> Sql {
    triggers::enable(schema, table, trigger.name, firing(trigger, is_replicated))
}

#[must_use]
pub fn drop(schema: &Ident, table: &Ident, trigger: &Trigger) -> Sql {
    triggers::drop(schema, table, trigger.name)
}
