//! Which tables have the triggers that capture row changes, and which are to have them.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{QName, Relation, RelationKind, TenantDb, Trigger};
use rowgate_sql::catalog::EntityKind;
use rowgate_sql::ddl::{capture as ddl, triggers};
use rowgate_sql::text::{Ident, Sql};

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
    if let Some(column) = relation.columns.iter().find(|column| column.is_virtual) {
        let column = &column.name;
        return refused(&format!(
            "column {column} is generated at each read, so that a captured row lacks it; make it STORED"
        ));
    }
    if relation.primary_key.is_empty() {
        return refused("it has no primary key, by which readers tell rows apart; add one");
    }
    Ok(())
}

/// Entities whose changes are to be captured and are not, or not all.
pub(crate) fn missing<'a>(desired: &'a Desired, db: &TenantDb) -> Vec<&'a str> {
    let is_captured = |name: &QName| {
        let has = |trigger: &ddl::Trigger| {
            let there = db.relations[name].triggers.get(trigger.name);
            there.is_some_and(|there| there.function == trigger.function && there.enabled != "D")
        };
        ddl::TRIGGERS.iter().all(has)
    };
    let is_missing = |spec: &&EntitySpec| {
        let name = qname(spec);
        !db.relations.contains_key(&name)
            || ![&name].into_iter().chain(partitions(db, &name)).all(is_captured)
    };
    desired
        .entities
        .iter()
        .filter(|spec| spec.events)
        .filter(is_missing)
        .map(|spec| spec.name.as_str())
        .collect()
}

/// One operation for each table, so that only one is locked at a time.
pub(super) fn changes(
    desired: &Desired,
    db: &TenantDb,
    owner: &str,
    accepted: &BTreeMap<EntityName, Accepted<'_>>,
) -> Vec<Op> {
    let mut ops: Vec<Op> = functions(db, owner).into_iter().collect();
    let mut wanted: BTreeSet<&QName> = BTreeSet::new();
    let mut done: BTreeSet<QName> = BTreeSet::new();
    for entity in accepted.values().filter(|entity| entity.spec.events) {
        let (name, of) = (qname(entity.spec), Of::Entity(entity.spec.name.to_string()));
        let Some((name, root)) = db.relations.get_key_value(&name) else { continue };
        if !done.insert(name.clone()) {
            continue;
        }
        let key: Vec<Ident> = root.primary_key.iter().map(|column| ident(column)).collect();
        let tables: Vec<&QName> = [name].into_iter().chain(partitions(db, name)).collect();
        // the whole tree has one way to be captured: rows come by the root and by each partition
        let is_replicated = tables.iter().any(|table| db.relations[*table].is_replicated);
        let mut changes: Vec<(String, Vec<Sql>)> = Vec::new();
        for table in &tables {
            wanted.insert(table);
            for trigger in &ddl::TRIGGERS {
                changes.extend(repair(db, table, trigger, &key, is_replicated));
            }
        }
        changes.extend(of_rows(db, &tables, &key, is_replicated));
        let says = |(differs, all): (String, Vec<Sql>)| {
            let of = of.clone();
            all.into_iter().map(move |sql| of.clone().says(sql).undoing([differs.clone()]))
        };
        let statements: Vec<Statement> = changes.into_iter().flat_map(says).collect();
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
        // a partition loses the trigger for its rows with the partitioned table
        let there = ddl::TRIGGERS.iter().chain([&ddl::OF_ROWS]).filter(|trigger| {
            let there = relation.triggers.get(trigger.name);
            there.is_some_and(|there| there.function == trigger.function && !there.cloned)
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

/// They are the owner's, who can drop, move and change them.
fn functions(db: &TenantDb, owner: &str) -> Option<Op> {
    let is_other = |(signature, definition): &&(&'static str, &'static str)| {
        let there = db.routines.get(*signature);
        there.and_then(|it| it.definition.as_deref()) != Some(*definition)
    };
    let repaired = |(signature, definition): &(&'static str, &'static str)| {
        let differs = if db.routines.contains_key(*signature) { "was changed" } else { "is missing" };
        let [allow, make, close, forbid] =
            ddl::function(signature, definition, &ident(owner)).map(Statement::from);
        [allow, make.undoing([format!("function {signature} {differs}")]), close, forbid]
    };
    let statements: Vec<Statement> = ddl::FUNCTIONS.iter().filter(is_other).flat_map(repaired).collect();
    (!statements.is_empty()).then(|| Op::new("the functions that capture rows", As::Owner, statements))
}

/// What differs, and the statements that undo it.
fn repair(
    db: &TenantDb,
    table: &QName,
    trigger: &ddl::Trigger,
    key: &[Ident],
    is_replicated: bool,
) -> Option<(String, Vec<Sql>)> {
    let there = db.relations[table].triggers.get(trigger.name);
    let (schema, object) = (ident(&table.0), ident(&table.1));
    let on = format!("{}.{}", table.0, table.1);
    match there.filter(|there| is_the(there, trigger, key)) {
        Some(there) if there.enabled == ddl::firing(trigger, is_replicated).letter() => None,
        Some(_) => {
            let differs = format!("trigger {} on {on} fires for other writers than it should", trigger.name);
            Some((differs, vec![ddl::enable(&schema, &object, trigger, is_replicated)]))
        }
        None => {
            let drop = there.map(|_| ddl::drop(&schema, &object, trigger));
            let create = ddl::create(&schema, &object, trigger, key, is_replicated);
            Some((differences::trigger(there, trigger.name, &on), drop.into_iter().chain(create).collect()))
        }
    }
}

/// The same of the trigger for rows that are replicated: the root has it, and by it each partition.
fn of_rows(db: &TenantDb, tables: &[&QName], key: &[Ident], is_replicated: bool) -> Vec<(String, Vec<Sql>)> {
    let trigger = &ddl::OF_ROWS;
    let of = |table: &QName| db.relations[table].triggers.get(trigger.name);
    let drop = |table: &QName| {
        let differs = format!("trigger {} on {}.{} is not called for", trigger.name, table.0, table.1);
        (differs, vec![ddl::drop(&ident(&table.0), &ident(&table.1), trigger)])
    };
    let Some((root, parts)) = tables.split_first() else { return Vec::new() };
    let left = parts.iter().filter(|part| of(part).is_some_and(|there| !there.cloned));
    let mut changes: Vec<(String, Vec<Sql>)> = left.map(|part| drop(part)).collect();
    if !is_replicated {
        changes.extend(of(root).map(|_| drop(root)));
        return changes;
    }
    let of_root = repair(db, root, trigger, key, is_replicated);
    let is_off = |part: &&&QName| {
        of(part).is_some_and(|there| there.enabled != ddl::firing(trigger, is_replicated).letter())
    };
    match (of_root, parts.iter().find(is_off)) {
        (Some(change), _) => changes.push(change),
        (None, Some(part)) => {
            let differs = format!(
                "trigger {} on {}.{} fires for other writers than it should",
                trigger.name, part.0, part.1
            );
            changes
                .push((differs, vec![ddl::enable(&ident(&root.0), &ident(&root.1), trigger, is_replicated)]));
        }
        (None, None) => {}
    }
    changes
}

fn is_the(there: &Trigger, wanted: &ddl::Trigger, key: &[Ident]) -> bool {
    there.kind == wanted.kind
        && there.columns.is_empty()
        && there.function == wanted.function
        && there.arguments == triggers::arguments(key.iter().map(Ident::as_str))
        && !there.conditional
}
