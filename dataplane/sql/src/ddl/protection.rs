//! Concurrency Protection of one table: two columns, four triggers, and the functions that these run.
//!
//! Every update says which version of the row it knows, by setting `dl_expected_ts` to the row's present value. A trigger
//! cannot see which columns an UPDATE sets, only be made for some: so [`ECHO`] compares, and leaves NULL behind, and
//! [`STAMP`], which runs next for every update, refuses what is not NULL. Their names come after those of a tenant's own
//! triggers, which thus see what the caller wrote, and cannot set the column unseen.

use super::triggers;
use crate::catalog::EXPECTED_TS;
use crate::text::{Ident, Sql};

/// Of SQLSTATE class `DL`, raised for whoever writes. The row is not the one that the update knows.
pub const STALE: &str = "DL409";
/// The update does not say which version of the row it knows.
pub const LEFT_OUT: &str = "DL428";
/// A DELETE, a TRUNCATE, a cascade, or a row that would move to another partition.
pub const KEPT: &str = "DL405";

/// Whose writes are held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Writers {
    /// Everybody's.
    #[default]
    All,
    /// Those of sessions that logged in as the API does. Rows that others write get new versions without naming one.
    ApiOnly,
}

/// What triggers are told of [`Writers::ApiOnly`]. What they do not know holds everybody.
const API_ONLY: &str = "ApiOnly";

/// One trigger of a protected table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trigger {
    pub name: &'static str,
    /// What it runs, by `regprocedure` text.
    pub function: &'static str,
    /// `pg_trigger.tgtype`.
    pub kind: i16,
    /// The columns of UPDATE OF.
    pub columns: &'static [&'static str],
    /// Whether it is told the flag's column.
    pub takes_flag: bool,
    when: &'static str,
}

const ROW: i16 = 1;
const BEFORE: i16 = 2;
const INSERT: i16 = 4;
const DELETE: i16 = 8;
const UPDATE: i16 = 16;
const TRUNCATE: i16 = 32;

/// No trigger of somebody else's that runs before a row is written may have a name from here on: it would see, or undo,
/// what ours tell each other.
pub const LAST: &str = "~dl";

pub const ECHO: Trigger = Trigger {
    name: "~dl_1_echo",
    function: "dl.protect_echo()",
    kind: ROW | BEFORE | UPDATE,
    columns: &[EXPECTED_TS],
    takes_flag: false,
    when: "before update of dl_expected_ts",
};
pub const STAMP: Trigger = Trigger {
    name: "~dl_2_stamp",
    function: "dl.protect_stamp()",
    kind: ROW | BEFORE | INSERT | UPDATE,
    columns: &[],
    takes_flag: false,
    when: "before insert or update",
};
/// For each row: a cascade over no rows deletes nothing.
pub const KEEP: Trigger = Trigger {
    name: "~dl_3_keep",
    function: "dl.protect_keep()",
    kind: ROW | BEFORE | DELETE,
    columns: &[],
    takes_flag: true,
    when: "before delete",
};
/// The only one that a partition does not get by its table.
pub const KEEP_ALL: Trigger = Trigger {
    name: "~dl_4_keep_all",
    function: "dl.protect_keep()",
    kind: BEFORE | TRUNCATE,
    columns: &[],
    takes_flag: true,
    when: "before truncate",
};

pub const TRIGGERS: [Trigger; 4] = [ECHO, STAMP, KEEP, KEEP_ALL];

/// By `regprocedure` text, as `pg_get_functiondef` prints them, so that what stands can be compared.
pub const FUNCTIONS: [(&str, &str); 3] = [
    ("dl.protect_echo()", include_str!("protection/echo.sql")),
    ("dl.protect_stamp()", include_str!("protection/stamp.sql")),
    ("dl.protect_keep()", include_str!("protection/keep.sql")),
];

impl Trigger {
    #[must_use]
    pub fn is_per_row(&self) -> bool {
        self.kind & ROW != 0
    }
}

/// Whether a trigger of `pg_trigger.tgtype` `kind` may change a row that is written.
#[must_use]
pub fn changes_rows(kind: i16) -> bool {
    kind & (ROW | BEFORE) == ROW | BEFORE && kind & (INSERT | UPDATE) != 0
}

/// The one of [`FUNCTIONS`] that is defined so.
#[must_use]
pub fn function(definition: &'static str) -> Sql {
    let mut sql = Sql::new();
    sql.lit(definition).of_records();
    sql
}

/// `signature`: of [`FUNCTIONS`].
#[must_use]
pub fn drop_function(signature: &'static str) -> Sql {
    let mut sql = Sql::new();
    sql.lit("drop function ").lit(signature).of_records();
    sql
}

/// Adds the columns that are missing, with constants as defaults: no row is written, whatever their number.
#[must_use]
pub fn add_columns(schema: &Ident, table: &Ident, version: bool, flag: Option<&Ident>) -> Sql {
    let mut sql = alter(schema, table);
    if version {
        sql.lit(" add column dl_expected_ts timestamptz not null default pg_catalog.now()");
    }
    if let Some(flag) = flag {
        sql.lit(if version { "," } else { "" });
        sql.lit(" add column ").ident(flag).lit(" boolean not null default false");
    }
    sql
}

/// A default, so that nobody has to give a value, and NOT NULL, without which [`ECHO`] could be forged.
#[must_use]
pub fn mend_column(schema: &Ident, table: &Ident) -> Sql {
    let mut sql = alter(schema, table);
    sql.lit(
        " alter column dl_expected_ts set default pg_catalog.now(), alter column dl_expected_ts set not null",
    );
    sql
}

#[must_use]
pub fn drop_column(schema: &Ident, table: &Ident) -> Sql {
    let mut sql = alter(schema, table);
    sql.lit(" drop column dl_expected_ts");
    sql
}

/// Of a table that is given back. `flag`: a column that [`add_columns`] added to it.
#[must_use]
pub fn drop_flag(schema: &Ident, table: &Ident, flag: &Ident) -> Sql {
    let mut sql = alter(schema, table);
    sql.lit(" drop column ").ident(flag);
    sql
}

/// What a trigger is told. `flag`: the column that marks rows as deleted.
#[must_use]
pub fn arguments<'a>(trigger: &Trigger, flag: &'a Ident, writers: Writers) -> Vec<&'a str> {
    let flag = trigger.takes_flag.then_some(flag.as_str());
    flag.into_iter().chain((writers == Writers::ApiOnly).then_some(API_ONLY)).collect()
}

/// Makes one trigger, which fires whatever `session_replication_role` says.
#[must_use]
pub fn create(schema: &Ident, table: &Ident, trigger: &Trigger, flag: &Ident, writers: Writers) -> [Sql; 2] {
    let mut create = Sql::new();
    create.lit("create trigger \"").lit(trigger.name).lit("\" ").lit(trigger.when).lit(" on ");
    create.ident(schema).lit(".").ident(table);
    create.lit(if trigger.is_per_row() { " for each row" } else { " for each statement" });
    create.lit(" execute function ");
    match (&arguments(trigger, flag, writers)[..], trigger.function.strip_suffix(')')) {
        ([first, others @ ..], Some(open)) => {
            create.lit(open).literal(first);
            for argument in others {
                create.lit(", ").literal(argument);
            }
            create.lit(")");
        }
        _ => {
            create.lit(trigger.function);
        }
    }
    [create, triggers::enable_always(schema, table, trigger.name)]
}

#[must_use]
pub fn drop(schema: &Ident, table: &Ident, trigger: &Trigger) -> Sql {
    triggers::drop(schema, table, trigger.name)
}

fn alter(schema: &Ident, table: &Ident) -> Sql {
    let mut sql = Sql::new();
    sql.lit("alter table ").ident(schema).lit(".").ident(table);
    sql
}
