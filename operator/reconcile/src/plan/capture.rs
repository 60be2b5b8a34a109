//! Which tables have the triggers that capture row changes, and which are to have them.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{QName, Relation, RelationKind, TenantDb, Trigger};
use rowgate_sql::catalog::EntityKind;
use rowgate_sql::ddl::{capture as ddl, triggers};
use rowgate_sql::text::Ident;

use super::accept::{Accepted, qname};
use super::protection::partitions;
use super::roles_and_database::ident;
use super::{As, Finding, Of, Op, Statement, differences};
use crate::desired::{Desired, EntitySpec};

/// Whether row changes of the entity can be captured, if they are to be.
pub(super) fn fits(spec: &EntitySpec, relation: &Relation, db: &TenantDb) -> Result<(), Finding> {
    if !spec.events {
        return Ok(());
    }
    let refused = |message: &str| Err(Finding::new(Reason::SourceUnsupported, format!("events: {message}")));
    let name = qname(spec);
    let is_child = |it: &Relation| !it.is_partition && it.parents.contains(&name);
    if spec.kind != EntityKind::Table {
        return refused(
            "a view has no rows of its own; capture the tables that it reads, and leave events out here",
        );
    }
    if relation.kind == RelationKind::ForeignTable {
        return refused("rows of a foreign table change elsewhere; leave events out");
    }
    if relation.is_partition {
        return refused("it is a partition; capture the partitioned table");
    }
    if !relation.parents.is_empty() || db.relations.values().any(is_child) {
        return refused("it inherits, or is inherited from, and triggers are not inherited; partition it");
    }
    if partitions(db, &name).iter().any(|part| db.relations[*part].kind == RelationKind::ForeignTable) {
        return refused("a partition is a foreign table, whose rows change elsewhere; detach it");
    }
    if relation.primary_key.is_empty() {
        return refused("it has no primary key, by which readers tell rows apart; add one");
    }
    Ok(())
}

/// One operation for each table, so that only one is locked at a time.
pub(super) fn changes(
    desired: &Desired,
    db: &TenantDb,
    owner: &str,
    accepted: &BTreeMap<EntityName, Accepted<'_>>,
) -> Vec<Op> {
    let mut ops = Vec::new();
    let mut wanted: BTreeSet<&QName> = BTreeSet::new();
    let mut done: BTreeSet<QName> = BTreeSet::new();
    for entity in accepted.values().filter(|entity| entity.spec.events) {
        let (name, of) = (qname(entity.spec), Of::Entity(entity.spec.name.to_string()));
        let Some((name, root)) = db.relations.get_key_value(&name) else { continue };
        if !done.insert(name.clone()) {
            continue;
        }
        let key: Vec<Ident> = root.primary_key.iter().map(|column| ident(column)).collect();
        let mut statements: Vec<Statement> = Vec::new();
        for table in [name].into_iter().chain(partitions(db, name)) {
            wanted.insert(table);
            let (schema, object) = (ident(&table.0), ident(&table.1));
            for trigger in &ddl::TRIGGERS {
                let there = db.relations[table].triggers.get(trigger.name);
                if there.is_some_and(|there| is_the(there, trigger, &key)) {
                    continue;
                }
                let differs = differences::trigger(there, trigger.name, &format!("{}.{}", table.0, table.1));
                let drop = there.map(|_| ddl::drop(&schema, &object, trigger)).into_iter();
                let all = drop.chain(ddl::create(&schema, &object, trigger, &key));
                statements.extend(all.map(|sql| of.clone().says(sql).undoing([differs.clone()])));
            }
        }
        if !statements.is_empty() {
            ops.push(Op::new(&format!("capture {}.{}", name.0, name.1), As::Owner, statements));
        }
    }
    // an entity that cannot be served now goes on being captured: what is not captured is lost
    let is_kept = |name: &QName| {
        wanted.contains(name)
            || desired.entities.iter().any(|spec| {
                let root = qname(spec);
                spec.events && (root == *name || partitions(db, &root).contains(&name))
            })
    };
    for (name, relation) in db.relations.iter().filter(|(name, it)| it.owner == owner && !is_kept(name)) {
        let there = ddl::TRIGGERS.iter().filter(|trigger| {
            relation.triggers.get(trigger.name).is_some_and(|there| there.function == ddl::FUNCTION)
        });
        let differs = format!("{}.{} is captured without declaring events", name.0, name.1);
        let drop = |trigger: &ddl::Trigger| ddl::drop(&ident(&name.0), &ident(&name.1), trigger);
        let statements: Vec<Statement> =
            there.map(|trigger| Statement::from(drop(trigger)).undoing([differs.clone()])).collect();
        if !statements.is_empty() {
            ops.push(Op::new(&format!("no longer capture {}.{}", name.0, name.1), As::Owner, statements));
        }
    }
    ops
}

fn is_the(there: &Trigger, wanted: &ddl::Trigger, key: &[Ident]) -> bool {
    there.kind == wanted.kind
        && there.columns.is_empty()
        && there.function == ddl::FUNCTION
        && there.arguments == triggers::arguments(key.iter().map(Ident::as_str))
        && !there.conditional
        && there.enabled == "A"
}
