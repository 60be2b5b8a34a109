//! What `dl.applied` says of protected tables: by the oid, since tables are renamed.

use std::collections::BTreeSet;

use rowgate_pg::introspect::actual::{QName, Relation, RelationKind, TenantDb};
use rowgate_sql::ddl::protection as ddl;
use serde::{Deserialize, Serialize};

use super::key;

/// In `dl.applied`.
pub(super) const KIND: &str = "protection";

/// What is known of a protected table that it does not say itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Recorded {
    pub(super) oid: u32,
    pub(super) soft_delete: String,
    /// `dl_expected_ts` is ours, and goes when the protection does.
    pub(super) adds_version: bool,
}

/// Under this name of a table, which may be another one by now.
pub(super) fn under(db: &TenantDb, record: &str) -> Option<Recorded> {
    let applied = db.applied.get(&(KIND.to_owned(), record.to_owned()))?;
    serde_json::from_str(&applied.recorded).ok()
}

/// Of this table, under its name or one that it had.
pub(super) fn of(db: &TenantDb, name: &QName, oid: u32) -> Option<Recorded> {
    let is_its = |it: &Recorded| it.oid == oid;
    under(db, &key(name))
        .filter(is_its)
        .or_else(|| records(db).find_map(|record| under(db, record).filter(is_its)))
}

/// Tables that were protected and are not wanted so, by the names under which they are recorded; and those that only have our triggers, such
/// as a partition that was detached.
pub(super) fn gone(db: &TenantDb, wanted: &BTreeSet<QName>) -> BTreeSet<String> {
    let is_wanted = |record: &&str| wanted.iter().any(|name| key(name) == **record);
    let gone: BTreeSet<&str> = records(db).filter(|record| !is_wanted(record)).collect();
    let found: BTreeSet<u32> = gone.iter().filter_map(|record| Some(under(db, record)?.oid)).collect();
    let is_stray = |(name, relation): &(&QName, &Relation)| {
        let ours = |it: &ddl::Trigger| {
            relation.triggers.get(it.name).is_some_and(|there| !there.cloned && there.function == it.function)
        };
        !wanted.contains(*name)
            && !relation.is_partition
            && !found.contains(&relation.oid)
            && ddl::TRIGGERS.iter().any(ours)
    };
    let strays = db.relations.iter().filter(is_stray).map(|(name, _)| key(name));
    gone.iter().map(|record| (*record).to_owned()).chain(strays).collect()
}

/// The table that is recorded so, under whatever name it has, unless it is to be protected under that.
pub(super) fn table<'a>(
    db: &'a TenantDb,
    wanted: &BTreeSet<QName>,
    record: &str,
) -> Option<(&'a QName, &'a Relation)> {
    let oid = under(db, record).map(|recorded| recorded.oid);
    let is_table = |(name, relation): &(&QName, &Relation)| {
        matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable)
            && !wanted.contains(*name)
    };
    let named = || db.relations.iter().filter(is_table).find(|(name, _)| key(name) == record);
    db.relations.iter().filter(is_table).find(|(_, relation)| Some(relation.oid) == oid).or_else(named)
}

fn records(db: &TenantDb) -> impl Iterator<Item = &str> {
    db.applied.keys().filter(|(kind, _)| kind == KIND).map(|(_, record)| record.as_str())
}
