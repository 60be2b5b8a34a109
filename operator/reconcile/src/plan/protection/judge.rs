//! Which tables can be protected, and what to change in the others.

use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{QName, Relation, RelationKind, TenantDb};
use rowgate_sql::catalog::EXPECTED_TS;
use rowgate_sql::ddl::protection as ddl;
use rowgate_sql::text::Ident;

use super::{VERSION_TYPE, partitions};
use crate::plan::Finding;

/// The flag's column. `is_ours`: the table is protected already, so missing parts of a column are repaired.
pub(super) fn table(
    db: &TenantDb,
    name: &QName,
    relation: &Relation,
    flag: &str,
    is_ours: bool,
) -> Result<Ident, Finding> {
    let text = format!("{}.{}", name.0, name.1);
    let refused = |message: String| {
        Err(Finding::new(Reason::SourceUnsupported, format!("concurrencyProtection: {message}")))
    };
    if relation.is_partition {
        return refused(format!("{text} is a partition; protect the partitioned table"));
    }
    let is_child = |it: &Relation| !it.is_partition && it.parents.contains(name);
    if !relation.parents.is_empty() || db.relations.values().any(is_child) {
        return refused(format!(
            "{text} inherits, or is inherited from, and triggers are not inherited; partition it, or expose a table without INHERITS"
        ));
    }
    let parts = partitions(db, name);
    let foreign = parts.iter().find(|part| {
        let part = &db.relations[**part];
        part.kind == RelationKind::ForeignTable || part.owner != relation.owner
    });
    if let Some((schema, part)) = foreign {
        return refused(format!(
            "the partition {schema}.{part} is a foreign table or belongs to another role; detach it, or give it to {}",
            relation.owner
        ));
    }
    for name in [name].into_iter().chain(parts) {
        let ours = |trigger: &str| ddl::TRIGGERS.iter().any(|it| it.name == trigger);
        let mut triggers = db.relations[name].triggers.iter();
        let last = triggers.find(|(trigger, it)| {
            ddl::LAST <= trigger.as_str() && ddl::changes_rows(it.kind) && !ours(trigger)
        });
        if let Some((trigger, _)) = last {
            return refused(format!(
                "the trigger {trigger} of {}.{} would run after the triggers that protect the table, and could undo their work; give it a name that sorts before {}",
                name.0,
                name.1,
                ddl::LAST
            ));
        }
    }
    let column = |name: &str| relation.columns.iter().find(|column| column.name == name);
    if let Some(there) = column(EXPECTED_TS)
        && (there.type_name != VERSION_TYPE || there.generated || !there.not_null && !is_ours)
    {
        return refused(format!(
            "{text} has a column {EXPECTED_TS} that is not timestamptz not null (it is {}); drop it, and Rowgate adds it, or change its type",
            there.type_name
        ));
    }
    let named = Ident::new(flag).filter(|_| !flag.starts_with("dl_"));
    let Some(ident) = named else {
        return refused(format!(
            "softDeleteColumn {flag} cannot be a column that callers write: its name must not begin with dl_ or exceed 63 bytes; name another"
        ));
    };
    match column(flag) {
        Some(there) if there.type_name != "boolean" || there.generated => refused(format!(
            "softDeleteColumn {flag} is {}, and must be a writable boolean; name another column",
            there.type_name
        )),
        _ => Ok(ident),
    }
}
