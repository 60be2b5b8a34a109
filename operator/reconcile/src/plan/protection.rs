//! Concurrency Protection: from the tables, triggers and functions that are there to those that the manifests ask for.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{Column, QName, Relation, RelationKind, TenantDb, Trigger};
use rowgate_sql::catalog::{EXPECTED_TS, EntityKind};
use rowgate_sql::ddl::protection::Writers;
use rowgate_sql::ddl::{grants, protection as ddl, records, triggers};
use rowgate_sql::text::{Ident, Sql};

use super::accept::qname;
use super::access::adopted;
use super::roles_and_database::ident;
use super::{As, Finding, Of, Op, Statement, differences};
use crate::desired::{Desired, EntitySpec};
use crate::source::Event;
use recorded::{KIND, Recorded};

mod flags;
mod judge;
mod recorded;

/// The column that marks rows as deleted unless the manifest names one.
const SOFT_DELETE: &str = "is_deleted";
/// `timestamp with time zone`
const TIMESTAMPTZ: u32 = 1184;
const VERSION_TYPE: &str = "timestamp with time zone";

#[derive(Debug, Default)]
pub(super) struct Changes {
    /// One for each table, so that only one is locked at a time. They narrow.
    pub(super) before: Vec<Op>,
    /// Tables that are no longer protected; nothing may depend on their protection.
    pub(super) after: Vec<Op>,
    /// By entity.
    pub(super) problems: BTreeMap<String, Finding>,
    /// Tables from which `after` takes the triggers.
    released: BTreeSet<QName>,
    /// To be published when all of it has run.
    pub(super) events: Vec<Event>,
    /// The database with the columns that it will have besides those that it has.
    pub(super) ahead: Option<TenantDb>,
    /// Tables whose `dl_expected_ts` is about to be dropped: no grant on it may remain.
    pub(super) leaving: BTreeSet<QName>,
}

/// It belongs to the table, so all entities over it say the same. `over`: they, `spec` among them.
pub(super) fn agreed<'a>(
    spec: &EntitySpec,
    mut over: impl Iterator<Item = &'a EntitySpec>,
) -> Result<(), Finding> {
    let differs = |other: &&EntitySpec| other.protection != spec.protection || other.writers != spec.writers;
    let Some(other) = over.find(differs) else { return Ok(()) };
    let message = format!(
        "entity {} over the same table has another concurrencyProtection, which is a property of the table; use the same in both",
        other.name
    );
    Err(Finding::new(Reason::InvalidSpec, message))
}

/// The column by which rows are hidden, if they are.
pub(super) fn hides_by(spec: &EntitySpec, relation: &Relation) -> Result<Option<String>, Finding> {
    if !spec.hide_soft_deleted {
        return Ok(None);
    }
    let name = spec.protection.as_ref().map_or(SOFT_DELETE, |protection| protection.soft_delete.as_str());
    match relation.columns.iter().find(|column| column.name == name) {
        Some(column) if column.type_name == "boolean" => Ok(Some(name.to_owned())),
        _ => {
            let message = format!(
                "hideSoftDeleted hides rows by a boolean column {name}, which it does not have; add it"
            );
            Err(Finding::new(Reason::FieldNotFound, message))
        }
    }
}

/// `closed`: the names of entities that stay as they are.
pub(super) fn changes(
    desired: &Desired,
    db: &TenantDb,
    owner: &str,
    closed: &BTreeMap<String, Finding>,
) -> Changes {
    let mut changes = Changes::default();
    let mut wanted: BTreeSet<QName> = BTreeSet::new();
    let mut done: BTreeSet<QName> = BTreeSet::new();
    for spec in desired.entities.iter().filter(|spec| spec.kind == EntityKind::Table) {
        let Some(protection) = &spec.protection else { continue };
        let name = qname(spec);
        wanted.insert(name.clone());
        // `accept` reports what is wrong with the source itself
        let Some(relation) = db.relations.get(&name).filter(|relation| relation.owner == owner) else {
            continue;
        };
        let is_table = matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable);
        let twins = desired.entities.iter().filter(|other| qname(other) == name && other.kind == spec.kind);
        if !is_table
            || closed.contains_key(spec.name.as_str())
            || agreed(spec, twins).is_err()
            || adopted::fits(spec, desired, relation, db).is_err()
        {
            continue;
        }
        // of what an application has, nothing is repaired
        let recorded = recorded::of(db, &name, relation.oid);
        let is_ours = recorded.is_some_and(|recorded| recorded.adds_version || !desired.is_adopted);
        match judge::table(db, &name, relation, &protection.soft_delete, is_ours) {
            Err(finding) => {
                changes.problems.insert(spec.name.to_string(), finding);
            }
            Ok(flag) if done.insert(name.clone()) => {
                changes.protect(desired, db, spec, &name, relation, &flag);
            }
            Ok(_) => {}
        }
    }
    // a source may be mistyped or a table renamed: perhaps the very table that would lose its versions now
    let is_lost = wanted.iter().any(|name| !db.relations.contains_key(name));
    let flags = flags::leaving(desired, db, owner);
    for record in recorded::gone(db, &wanted).into_iter().filter(|_| !is_lost) {
        let mut over = desired.entities.iter().filter(|spec| key(&qname(spec)) == record);
        if !over.any(|spec| closed.contains_key(spec.name.as_str())) {
            let table = recorded::table(db, &wanted, &record);
            changes.unprotect(desired, db, owner, &record, table, &flags);
        }
    }
    changes.after.extend(flags.iter().map(flags::Leaving::removal));
    changes.functions(db, owner, !wanted.is_empty());
    changes
}

impl Changes {
    fn protect(
        &mut self,
        desired: &Desired,
        db: &TenantDb,
        spec: &EntitySpec,
        name: &QName,
        relation: &Relation,
        flag: &Ident,
    ) {
        let (schema, table, writers) = (&spec.schema, &spec.object, spec.writers);
        let recorded = recorded::of(db, name, relation.oid);
        let has = |column: &str| relation.columns.iter().any(|it| it.name == column);
        let (version, flag_missing) = (!has(EXPECTED_TS), !has(flag.as_str()));
        let (of, on) = (Of::Entity(spec.name.to_string()), key(name));
        let says = |sql: Sql, differs: String| of.clone().says(sql).undoing([differs]);
        let mut statements: Vec<Statement> = Vec::new();
        if version || flag_missing {
            let missing = [(version, EXPECTED_TS), (flag_missing, flag.as_str())];
            let missing = missing.iter().filter(|(is, _)| *is).map(|(_, column)| *column);
            let differs = format!("{on} lacks {}", missing.collect::<Vec<_>>().join(" and "));
            let add = ddl::add_columns(schema, table, version, flag_missing.then_some(flag));
            statements.push(says(add, differs));
            if flag_missing && desired.is_adopted {
                statements.push(of.clone().says(flags::record(name, relation.oid, flag)));
            }
            self.add(db, name, version, flag_missing.then_some(flag));
        }
        let adds_version = version || recorded.as_ref().is_some_and(|recorded| recorded.adds_version);
        let is_whole = |column: &&Column| column.not_null && column.default.as_deref() == Some("now()");
        let is_repaired = !version && (adds_version || !desired.is_adopted);
        if is_repaired && !relation.columns.iter().filter(|it| it.name == EXPECTED_TS).any(|it| is_whole(&it))
        {
            let differs = format!("{EXPECTED_TS} of {on} lacks its default, or may be NULL");
            statements.push(says(ddl::mend_column(schema, table), differs));
        }
        let stands = |relation: &Relation, trigger: &ddl::Trigger| {
            relation.triggers.get(trigger.name).is_some_and(|it| is_the(it, trigger, flag, writers))
        };
        let parts = partitions(db, name);
        for trigger in &ddl::TRIGGERS {
            let cloned = parts.iter().filter(|_| trigger.is_per_row());
            if !stands(relation, trigger)
                || !cloned.into_iter().all(|part| stands(&db.relations[*part], trigger))
            {
                let differs = differences::trigger(relation.triggers.get(trigger.name), trigger.name, &on);
                let drop = drop_if_there(relation, schema, table, trigger).into_iter();
                let all = drop.chain(ddl::create(schema, table, trigger, flag, writers));
                statements.extend(all.map(|sql| says(sql, differs.clone())));
            }
        }
        for part in &parts {
            let (relation, schema, table) = (&db.relations[*part], ident(&part.0), ident(&part.1));
            if !stands(relation, &ddl::KEEP_ALL) {
                let (name, on) = (ddl::KEEP_ALL.name, key(part));
                let differs = differences::trigger(relation.triggers.get(name), name, &on);
                let drop = drop_if_there(relation, &schema, &table, &ddl::KEEP_ALL).into_iter();
                let all = drop.chain(ddl::create(&schema, &table, &ddl::KEEP_ALL, flag, writers));
                statements.extend(all.map(|sql| says(sql, differs.clone())));
            }
        }
        let record = Recorded { oid: relation.oid, soft_delete: flag.as_str().to_owned(), adds_version };
        let is_new = recorded::under(db, &on).as_ref() != Some(&record);
        let before = recorded.map(|recorded| recorded.soft_delete).filter(|it| *it != record.soft_delete);
        if let Some(before) = before.filter(|before| has(before)) {
            let note = format!(
                "{} now marks deleted rows in {}; rows marked only in {before} count as not deleted: copy them, then drop {before}",
                key(name),
                record.soft_delete
            );
            self.events.push(Event { reason: "FlagReplaced".to_owned(), note, warning: true });
        }
        if is_new {
            let text = serde_json::to_string(&record).expect("a record is plain values");
            let differs = format!("dl.applied records another protection of {on}");
            statements.push(says(records::put_applied(KIND, &on, "", &text), differs));
        }
        if !statements.is_empty() {
            self.before.push(op(&format!("protect {on}"), statements));
        }
    }

    /// `table`: the one that is recorded so. `flags`: the columns that go, too.
    fn unprotect(
        &mut self,
        desired: &Desired,
        db: &TenantDb,
        owner: &str,
        record: &str,
        table: Option<(&QName, &Relation)>,
        flags: &[flags::Leaving<'_>],
    ) {
        let mut statements = Vec::new();
        if let Some((name, relation)) = table {
            // nothing of it can be changed
            if relation.owner != owner {
                return;
            }
            for name in [name].into_iter().chain(partitions(db, name)) {
                self.released.insert(name.clone());
                let (relation, schema, table) = (&db.relations[name], ident(&name.0), ident(&name.1));
                let there = ddl::TRIGGERS.iter().filter(|it| is_ours_there(relation, it));
                statements.extend(there.map(|trigger| ddl::drop(&schema, &table, trigger)));
            }
            let recorded = recorded::of(db, name, relation.oid);
            let version = relation.columns.iter().find(|column| column.name == EXPECTED_TS);
            let mut stays: Vec<String> = Vec::new();
            if let Some(column) = version.filter(|_| recorded.as_ref().is_some_and(|it| it.adds_version)) {
                match &column.needed_by {
                    None => {
                        statements.push(ddl::drop_column(&ident(&name.0), &ident(&name.1)));
                        self.leaving.extend([name].into_iter().chain(partitions(db, name)).cloned());
                    }
                    Some(by) => stays.push(format!("{EXPECTED_TS}, which {by} needs")),
                }
            }
            if let Some(flag) = recorded.map(|recorded| recorded.soft_delete) {
                let goes = flags.iter().find(|it| it.oid == relation.oid && it.column == flag);
                match goes.map(flags::Leaving::needed_by) {
                    None => stays.push(format!("{flag}, which marks what was deleted")),
                    Some(Some(by)) => stays.push(format!("{flag}, which {by} needs")),
                    Some(None) => {}
                }
            }
            let stays = match &stays[..] {
                [] => String::new(),
                stays => format!("; it keeps {}; drop it if it is no longer needed", stays.join(", and ")),
            };
            let note = format!("{record} is no longer under concurrencyProtection{stays}");
            self.events.push(Event { reason: "Unprotected".to_owned(), note, warning: false });
        }
        statements.push(records::drop_applied(KIND, record));
        let mut entities = desired.entities.iter();
        let entity = entities.find(|spec| key(&qname(spec)) == record);
        let of = entity.map_or(Of::Tenant, |spec| Of::Entity(spec.name.to_string()));
        let mut statements: Vec<Statement> = statements.into_iter().map(|sql| of.clone().says(sql)).collect();
        let differs = format!("{record} has parts of concurrencyProtection without declaring it");
        statements.first_mut().into_iter().for_each(|first| first.undoes.push(differs.clone()));
        self.after.push(op(&format!("remove the protection of {record}"), statements));
    }

    /// The functions are made when a table needs them, and go with the last.
    fn functions(&mut self, db: &TenantDb, owner: &str, is_wanted: bool) {
        let there = |signature: &str| db.routines.get(signature);
        if is_wanted {
            let differs = |(signature, definition): &&(&'static str, &'static str)| {
                there(signature).and_then(|it| it.definition.as_deref()) != Some(*definition)
            };
            let define = |(signature, definition): &(&'static str, &'static str)| {
                let differs = if there(signature).is_some() { "was changed" } else { "is missing" };
                let define = Statement::from(ddl::function(definition));
                let target = grants::Target::Routine((*signature).to_owned());
                // who makes a trigger may call what it runs
                let grant = grants::grant("EXECUTE", &target, &[owner]).map(Statement::from);
                [define.undoing([format!("function {signature} {differs}")])].into_iter().chain(grant)
            };
            let statements: Vec<Statement> = ddl::FUNCTIONS.iter().filter(differs).flat_map(define).collect();
            if !statements.is_empty() {
                self.before.insert(0, op("the functions of concurrency protection", statements));
            }
            return;
        }
        let runs = |(name, relation): (&QName, &Relation), signature: &str| {
            let is_leaving = |trigger: &str| {
                ddl::TRIGGERS.iter().any(|it| it.name == trigger) && self.released.contains(name)
            };
            let mut triggers = relation.triggers.iter();
            triggers.any(|(name, it)| it.function == signature && !it.cloned && !is_leaving(name))
        };
        let is_idle = |signature: &str| !db.relations.iter().any(|it| runs(it, signature));
        let statements: Vec<Statement> = ddl::FUNCTIONS
            .iter()
            .filter(|(signature, _)| there(signature).is_some() && is_idle(signature))
            .map(|(signature, _)| ddl::drop_function(signature).into())
            .collect();
        if !statements.is_empty() {
            self.after.push(op("drop the functions of concurrency protection", statements));
        }
    }

    /// What the columns of `name` and its partitions will be.
    fn add(&mut self, db: &TenantDb, name: &QName, version: bool, flag: Option<&Ident>) {
        let column = |name: &str, type_oid: u32, type_name: &str| Column {
            name: name.to_owned(),
            type_oid,
            type_name: type_name.to_owned(),
            not_null: true,
            ..Column::default()
        };
        let version = version.then(|| column(EXPECTED_TS, TIMESTAMPTZ, VERSION_TYPE));
        let flag = flag.map(|flag| column(flag.as_str(), 16, "boolean"));
        let added: Vec<Column> = version.into_iter().chain(flag).collect();
        let ahead = self.ahead.get_or_insert_with(|| db.clone());
        for name in [name].into_iter().chain(partitions(db, name)) {
            let relation = ahead.relations.get_mut(name);
            relation.into_iter().for_each(|it| it.columns.extend(added.iter().cloned()));
        }
    }
}

/// Whether the entity is a view with the version of a protected table under it: of its kind and name, at least. Whether
/// PostgreSQL passes on what is written there the data plane looks at.
pub(super) fn shows_version(spec: &EntitySpec, view: &Relation, desired: &Desired, db: &TenantDb) -> bool {
    let is_it = |column: &Column| column.name == EXPECTED_TS && column.type_oid == TIMESTAMPTZ;
    if spec.kind != EntityKind::View || !view.columns.iter().any(is_it) {
        return false;
    }
    let protected =
        |name: &QName| desired.entities.iter().any(|it| it.protection.is_some() && qname(it) == *name);
    let (mut todo, mut seen): (Vec<&QName>, BTreeSet<&QName>) =
        (view.reads.iter().collect(), BTreeSet::new());
    while let Some(name) = todo.pop() {
        if protected(name) {
            return true;
        }
        if seen.insert(name) {
            todo.extend(db.relations.get(name).into_iter().flat_map(|it| &it.reads));
        }
    }
    false
}

fn op(about: &str, statements: Vec<Statement>) -> Op {
    Op::new(about, As::Owner, statements)
}

fn key(name: &QName) -> String {
    format!("{}.{}", name.0, name.1)
}

/// Those of `name`, at every level.
pub(super) fn partitions<'a>(db: &'a TenantDb, name: &QName) -> Vec<&'a QName> {
    let mut found: Vec<&QName> = Vec::new();
    let mut todo = vec![name.clone()];
    while let Some(parent) = todo.pop() {
        let parts = db.relations.iter().filter(|(_, it)| it.is_partition && it.parents.contains(&parent));
        for (part, _) in parts {
            found.push(part);
            todo.push(part.clone());
        }
    }
    found
}

fn is_the(there: &Trigger, wanted: &ddl::Trigger, flag: &Ident, writers: Writers) -> bool {
    let arguments = triggers::arguments(ddl::arguments(wanted, flag, writers));
    there.kind == wanted.kind
        && there.columns == wanted.columns
        && there.function == wanted.function
        && there.arguments == arguments
        && !there.conditional
        && there.enabled == "A"
}

/// A partition's own goes with its table's.
fn is_ours_there(relation: &Relation, trigger: &ddl::Trigger) -> bool {
    relation.triggers.get(trigger.name).is_some_and(|there| !there.cloned)
}

fn drop_if_there(relation: &Relation, schema: &Ident, table: &Ident, trigger: &ddl::Trigger) -> Option<Sql> {
    is_ours_there(relation, trigger).then(|| ddl::drop(schema, table, trigger))
}
