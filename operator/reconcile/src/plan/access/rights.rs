//! From `permissions[]` to columns: what each role holds, resolved once per generation of the resource that says it.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_crds::Reason;
use rowgate_sql::catalog::{Action, EXPECTED_TS, EntityRecord, PermissionRecord};
use rowgate_sql::text::Ident;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::desired::Permission;
use crate::plan::Finding;
use crate::plan::accept::{Accepted, Away, On, source};

/// What `['*']` meant when a generation was applied: a column added later stays closed until the resource changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::plan) struct Resolved {
    pub(in crate::plan) generation: i64,
    pub(in crate::plan) permissions: Vec<ResolvedPermission>,
    /// What was held of entities that are not served now; nothing of it is granted. When one is served again, `*` means no more than
    /// before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unserved: Vec<ResolvedPermission>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::plan) struct ResolvedPermission {
    /// `schema.object` that the entity stood for.
    source: String,
    #[serde(flatten)]
    record: PermissionRecord,
}

/// Columns of one action on one entity: those that are named (or are the key), and those that `*` stands for.
#[derive(Debug, Default)]
struct Columns {
    named: BTreeSet<String>,
    starred: BTreeSet<String>,
}

impl Resolved {
    /// The rights themselves, sorted.
    pub(in crate::plan) fn records(&self) -> Vec<PermissionRecord> {
        self.permissions.iter().map(|permission| permission.record.clone()).collect()
    }
}

/// The identity of a permission set: equal rights share a role.
pub(in crate::plan) fn hash(records: &[PermissionRecord]) -> String {
    let text = serde_json::to_vec(records).expect("permissions are plain values");
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Resolves `permissions` of a resource at `generation`, keeping what `recorded` says for the same generation.
/// What cannot be resolved is left out, with a sentence each; what is recorded of an entity that is away stays.
pub(in crate::plan) fn resolve(
    permissions: &[Permission],
    generation: i64,
    recorded: Option<Resolved>,
    accepted: &BTreeMap<EntityName, Accepted<'_>>,
    away: &Away,
) -> (Resolved, Vec<Finding>) {
    let mut problems = Vec::new();
    let mut unserved: BTreeSet<&EntityName> = BTreeSet::new();
    let mut rights: BTreeMap<(EntityName, Action), Columns> = BTreeMap::new();
    for permission in permissions {
        let Some(entity) = accepted.get(&permission.entity) else {
            let message = format!(
                "permissions name the entity {}, which is not served; correct the entity in the Tenant, or remove it here",
                permission.entity
            );
            problems.push(Finding::new(Reason::EntityNotFound, message));
            unserved.insert(&permission.entity);
            continue;
        };
        for &action in &permission.actions {
            if (action == Action::Execute) != matches!(entity.on, On::Routine(..)) {
                problems.push(unfit(entity, action));
                continue;
            }
            let (columns, unknown) = columns(entity, action, permission);
            problems.extend(unknown.into_iter().map(|field| {
                let message = format!(
                    "permissions on {} name the field {field}, which it does not have; correct fields",
                    permission.entity
                );
                Finding::new(Reason::FieldNotFound, message)
            }));
            let needs_key = matches!(action, Action::Read | Action::Update | Action::Delete);
            if needs_key {
                problems.extend(excluded_key(entity, permission));
            }
            let held = rights.entry((permission.entity.clone(), action)).or_default();
            match permission.include.as_deref() {
                None => held.starred.extend(columns),
                Some(fields) if fields.iter().any(|field| field == "*") => held.starred.extend(columns),
                Some(_) => held.named.extend(columns),
            }
            if needs_key {
                let needed = needed(entity).map(str::to_owned);
                rights.entry((permission.entity.clone(), Action::Read)).or_default().named.extend(needed);
            }
            if action == Action::Update && keeps_version(&entity.record) {
                let update = rights.entry((permission.entity.clone(), Action::Update)).or_default();
                update.named.insert(EXPECTED_TS.to_owned());
            }
        }
    }
    let recorded = recorded.filter(|recorded| recorded.generation == generation).unwrap_or_default();
    let recorded = [recorded.permissions, recorded.unserved].concat();
    let served = rights.into_iter().filter_map(|((entity, action), columns)| {
        let source = source(accepted[&entity].spec);
        let before = recorded.iter().find(|permission| {
            permission.record.entity == entity
                && permission.record.action == action
                && permission.source == source
        });
        let Columns { named, mut starred } = columns;
        if let Some(before) = before {
            starred.retain(|column| before.record.columns.contains(column));
        }
        let columns: Vec<String> = named.union(&starred).cloned().collect();
        let empty = columns.is_empty() && !matches!(action, Action::Delete | Action::Execute);
        (!empty)
            .then_some(ResolvedPermission { source, record: PermissionRecord { entity, action, columns } })
    });
    let mut permissions: Vec<ResolvedPermission> = served.collect();
    let (kept, mut unserved): (Vec<_>, Vec<_>) = recorded
        .into_iter()
        .filter(|it| unserved.contains(&it.record.entity))
        .partition(|it| away.get(&it.record.entity) == Some(&it.source));
    permissions.extend(kept);
    permissions.sort_by(|a, b| a.record.cmp(&b.record));
    unserved.sort();
    problems.sort();
    problems.dedup();
    (Resolved { generation, permissions, unserved }, problems)
}

/// What is called is not read, and the other way round.
fn unfit(entity: &Accepted<'_>, action: Action) -> Finding {
    let name = &entity.spec.name;
    let message = match action {
        Action::Execute => {
            format!(
                "permissions on {name} name execute, which only a Procedure supports; use read, create, update or delete"
            )
        }
        _ => format!("permissions on {name} name {}, but it is a Procedure; use execute", action.as_str()),
    };
    Finding::new(Reason::InvalidSpec, message)
}

/// The columns that reading, updating and deleting need: the key, the version that each update says, and what rows are
/// hidden by.
fn needed<'a>(entity: &'a Accepted<'_>) -> impl Iterator<Item = &'a str> {
    let record = &entity.record;
    let version = keeps_version(record).then_some(EXPECTED_TS);
    let key = record.key_columns.iter().map(Ident::as_str);
    key.chain(version).chain(record.hide_soft_deleted.as_deref())
}

/// A change of its rows names the version that it knows.
fn keeps_version(record: &EntityRecord) -> bool {
    record.protection.is_some() || record.shows_version
}

/// None of them can be left out.
fn excluded_key(entity: &Accepted<'_>, permission: &Permission) -> Option<Finding> {
    let is_needed =
        |field: &&String| entity.column(field).is_some_and(|column| needed(entity).any(|it| it == column));
    let field = permission.exclude.iter().find(is_needed)?;
    let is_key = entity
        .column(field)
        .is_some_and(|column| entity.record.key_columns.iter().any(|key| key.as_str() == column));
    let message = format!(
        "permissions on {} exclude the {}field {field}, which read, update and delete need; remove it from exclude",
        permission.entity,
        if is_key { "key " } else { "" }
    );
    Some(Finding::new(Reason::KeyFieldExcluded, message))
}

/// The columns of one entry, and the names in it that are no field.
fn columns(
    entity: &Accepted<'_>,
    action: Action,
    permission: &Permission,
) -> (BTreeSet<String>, Vec<String>) {
    let Some(relation) = entity.relation().filter(|_| action != Action::Delete) else {
        return (BTreeSet::new(), Vec::new());
    };
    let writable = |name: &str| {
        let column = relation.columns.iter().find(|column| column.name == name);
        column.is_some_and(|c| !c.generated && !c.identity_always && !c.name.starts_with("dl_"))
    };
    let all = || entity.columns().map(str::to_owned);
    let mut unknown = Vec::new();
    let mut named = |fields: &[String]| -> BTreeSet<String> {
        let mut columns = BTreeSet::new();
        for field in fields {
            match entity.column(field) {
                _ if field == "*" => columns.extend(all()),
                Some(column) => {
                    columns.insert(column.to_owned());
                }
                None => unknown.push(field.clone()),
            }
        }
        columns
    };
    let mut columns = match &permission.include {
        None => all().collect(),
        Some(fields) => named(fields),
    };
    let excluded = named(&permission.exclude);
    columns.retain(|column| !excluded.contains(column));
    if action != Action::Read {
        columns.retain(|column| writable(column));
    }
    (columns, unknown)
}

#[cfg(test)]
mod tests {
    use rowgate_pg::introspect::actual::{Column, Relation, RelationKind};
    use rowgate_sql::catalog::{EntityKind, GraphQlNames};

    use super::*;
    use crate::desired::{EntitySpec, Security};

    fn name() -> EntityName {
        "orders".parse().expect("a name")
    }

    fn ident(text: &str) -> Ident {
        Ident::new(text).expect("a name")
    }

    fn held(columns: &[&str]) -> Vec<ResolvedPermission> {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        let record = PermissionRecord { entity: name(), action: Action::Read, columns };
        vec![ResolvedPermission { source: "shop.orders".to_owned(), record }]
    }

    fn spec() -> EntitySpec {
        EntitySpec {
            name: name(),
            kind: EntityKind::Table,
            schema: ident("shop"),
            object: ident("orders"),
            key_fields: Vec::new(),
            mappings: BTreeMap::new(),
            rest: true,
            graphql: GraphQlNames::default(),
            protection: None,
            writers: Default::default(),
            hide_soft_deleted: false,
            events: false,
            allow_definer: false,
            security: Security::Open,
            replaces_policies: false,
        }
    }

    fn record() -> EntityRecord {
        EntityRecord {
            name: name(),
            kind: EntityKind::Table,
            schema: ident("shop"),
            object: ident("orders"),
            key_columns: vec![ident("id")],
            mappings: BTreeMap::new(),
            rest: true,
            graphql: GraphQlNames::default(),
            protection: None,
            hide_soft_deleted: None,
            shows_version: false,
            events: false,
            allow_definer: false,
        }
    }

    fn table(columns: &[&str]) -> Relation {
        let column = |name: &&str| Column { name: (*name).to_owned(), ..Column::default() };
        Relation {
            oid: 1,
            kind: RelationKind::Table,
            owner: "owner".to_owned(),
            rls_enabled: true,
            rls_forced: false,
            acl: BTreeMap::new(),
            columns: columns.iter().map(column).collect(),
            policies: BTreeMap::new(),
            primary_key: vec!["id".to_owned()],
            unique: BTreeSet::new(),
            indexes: BTreeSet::new(),
            foreign_keys: BTreeSet::new(),
            leaky: BTreeMap::new(),
            rule: None,
            reads: BTreeSet::new(),
            routines: BTreeSet::new(),
            sequences: BTreeSet::new(),
            triggers: BTreeMap::new(),
            definers: BTreeSet::new(),
            parents: BTreeSet::new(),
            is_partition: false,
            is_replicated: false,
        }
    }

    #[test]
    fn what_is_held_of_an_entity_outlasts_its_absence_and_means_no_more_after_it() {
        let include = Some(vec!["*".to_owned()]);
        let permissions =
            [Permission { entity: name(), actions: vec![Action::Read], include, exclude: Vec::new() }];
        let before = Resolved { generation: 1, permissions: held(&["id", "total"]), ..Resolved::default() };
        let (nothing, nowhere) = (BTreeMap::new(), Away::new());
        let away = Away::from([(name(), "shop.orders".to_owned())]);
        let other = Away::from([(name(), "shop.others".to_owned())]);
        let unserved =
            Resolved { permissions: Vec::new(), unserved: held(&["id", "total"]), ..before.clone() };
        for (recorded, away, expected) in [
            (&before, &away, &before),
            (&before, &other, &unserved),
            (&before, &nowhere, &unserved),
            (&unserved, &nowhere, &unserved),
            (&unserved, &away, &before),
        ] {
            let (resolved, problems) = resolve(&permissions, 1, Some(recorded.clone()), &nothing, away);
            assert_eq!(resolved, *expected);
            assert_eq!(problems.len(), 1, "the entity is not served");
        }
        let (changed, _) = resolve(&permissions, 2, Some(unserved.clone()), &nothing, &away);
        assert_eq!(changed, Resolved { generation: 2, ..Resolved::default() });

        let (spec, table) = (spec(), table(&["id", "total", "note"]));
        let on = On::Relation(&table);
        let accepted =
            BTreeMap::from([(name(), Accepted { spec: &spec, on, record: record(), is_leaving: false })]);
        for recorded in [&before, &unserved] {
            let (resolved, _) = resolve(&permissions, 1, Some(recorded.clone()), &accepted, &nowhere);
            assert_eq!(resolved, before, "note is as closed as any column that was added");
        }
        let (changed, _) = resolve(&permissions, 2, Some(unserved), &accepted, &nowhere);
        assert_eq!(changed.permissions, held(&["id", "note", "total"]));
    }

    #[test]
    fn a_record_of_an_earlier_version_is_read_and_written_as_it_is() {
        let old = r#"{"generation":1,"permissions":[{"source":"shop.orders","entity":"orders","action":"read","columns":["id"]}]}"#;
        let resolved: Resolved = serde_json::from_str(old).expect("a record");
        assert_eq!((&resolved.permissions, &resolved.unserved), (&held(&["id"]), &Vec::new()));
        assert_eq!(serde_json::to_string(&resolved).expect("plain values"), old);
    }
}
