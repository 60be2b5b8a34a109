//! The columns that mark rows as deleted and that Rowgate added to tables of an application: they stay as long as an entity names the table,
//! and go when it is given back.

use std::collections::BTreeSet;

use rowgate_pg::introspect::actual::{Column, QName, Relation, TenantDb};
use rowgate_sql::catalog::EntityKind;
use rowgate_sql::ddl::{protection as ddl, records};
use rowgate_sql::text::{Ident, Sql};
use serde::{Deserialize, Serialize};

use super::{key, op};
use crate::desired::Desired;
use crate::plan::accept::qname;
use crate::plan::roles_and_database::ident;
use crate::plan::{Op, Statement};

/// In `dl.applied`; `rowgate_pg::introspect` reads what needs these columns.
const KIND: &str = "flag";

#[derive(Debug, Serialize, Deserialize)]
struct Flag {
    oid: u32,
    column: String,
}

/// A column that is no longer wanted.
pub(super) struct Leaving<'a> {
    record: &'a str,
    pub(super) oid: u32,
    pub(super) column: String,
    table: Option<(&'a QName, &'a Column)>,
}

/// Says that the column is ours, in the transaction that adds it.
pub(super) fn record(name: &QName, oid: u32, flag: &Ident) -> Sql {
    let recorded = Flag { oid, column: flag.as_str().to_owned() };
    let text = serde_json::to_string(&recorded).expect("a record is plain values");
    records::put_applied(KIND, &format!("{}#{oid}.{}", key(name), flag.as_str()), "", &text)
}

/// Those of tables that no entity names.
pub(super) fn leaving<'a>(desired: &Desired, db: &'a TenantDb, owner: &str) -> Vec<Leaving<'a>> {
    let tables = desired.entities.iter().filter(|spec| spec.kind == EntityKind::Table);
    let named: BTreeSet<QName> = tables.map(qname).collect();
    // a source may be mistyped or a table renamed: perhaps this one
    if named.iter().any(|name| !db.relations.contains_key(name)) {
        return Vec::new();
    }
    let mut leaving = Vec::new();
    for ((_, record), applied) in db.applied.iter().filter(|((kind, _), _)| kind == KIND) {
        let Ok(Flag { oid, column }) = serde_json::from_str(&applied.recorded) else { continue };
        let found: Option<(&QName, &Relation)> = db.relations.iter().find(|(_, it)| it.oid == oid);
        // nothing of another role's can be changed
        if found.is_some_and(|(name, relation)| named.contains(name) || relation.owner != owner) {
            continue;
        }
        let is_it = |it: &&Column| it.name == column && it.type_name == "boolean";
        let table = found.and_then(|(name, relation)| Some((name, relation.columns.iter().find(is_it)?)));
        leaving.push(Leaving { record, oid, column, table });
    }
    leaving
}

impl Leaving<'_> {
    /// What would have to be dropped with it, so that it stays.
    pub(super) fn needed_by(&self) -> Option<&str> {
        self.table.and_then(|(_, column)| column.needed_by.as_deref())
    }

    pub(super) fn removal(&self) -> Op {
        let mut statements: Vec<Statement> = Vec::new();
        if let Some((name, _)) = self.table.filter(|(_, column)| column.needed_by.is_none()) {
            let (schema, table) = (ident(&name.0), ident(&name.1));
            statements.push(ddl::drop_flag(&schema, &table, &ident(&self.column)).into());
        }
        statements.push(records::drop_applied(KIND, self.record).into());
        op(&format!("give back {}", self.record), statements)
    }
}
