//! Relationships: what each joins, whether it can be served, and which rights on a linking table follow.
//!
//! `join` finds the columns that are compared. [`Relationships`] keeps what became of each.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::TenantDb;
use rowgate_sql::catalog::{
    Action, EntityKind, GraphQlNames, PermissionRecord, RelationshipRecord, ThroughRecord,
};
use rowgate_sql::ddl::protection::Writers;
use rowgate_sql::ddl::records;
use rowgate_sql::text::Ident;

use super::accept::{Accepted, Away, exposed};
use super::{Finding, Statement};
use crate::desired::{Desired, EntitySpec, RelationshipSpec, Security};
use join::{Columns, Join};

mod comparable;
mod join;

/// What became of one Relationship.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// Why it is not served; each sentence says what to change.
    pub problems: Vec<Finding>,
    pub warnings: Vec<String>,
    /// Such as `orders.customer_id = customers.id`.
    pub joins: Option<String>,
}

/// What the Relationships of a tenant come to.
#[derive(Debug, Default)]
pub(super) struct Relationships {
    /// By uid.
    pub(super) judged: BTreeMap<String, Judged>,
    /// By entity and name.
    records: BTreeMap<(String, String), RelationshipRecord>,
    /// By uid: those of which an end is away, and whose ways of before are kept.
    waiting: BTreeSet<String>,
}

/// The manifests with an entity for each table that only links others, so that it comes under row-level security and
/// rights as every table does. No surface serves it.
pub(super) fn with_links<'a>(desired: &'a Desired, db: &TenantDb) -> Cow<'a, Desired> {
    let mut links: BTreeMap<EntityName, EntitySpec> = BTreeMap::new();
    for spec in &desired.relationships {
        let Ok(Join { through: Some(link), .. }) = join::of(spec, desired, db) else { continue };
        let keys = [link.columns, link.to_columns].concat();
        let (schema, object) = (link.schema, link.object);
        // what an entity says of the table holds for its links, too
        let declared = desired.entities.iter().find(|it| it.schema == schema && it.object == object);
        let name = EntityName::of_link(schema.as_str(), object.as_str());
        links.entry(name.clone()).or_insert_with(|| EntitySpec {
            name,
            kind: EntityKind::Table,
            key_fields: keys,
            mappings: BTreeMap::new(),
            rest: false,
            graphql: GraphQlNames::default(),
            protection: declared.and_then(|it| it.protection.clone()),
            writers: declared.map_or_else(Writers::default, |it| it.writers),
            hide_soft_deleted: false,
            events: false,
            allow_definer: false,
            security: if declared.is_some() { Security::LeftOut } else { Security::Open },
            replaces_policies: declared.is_some_and(|it| it.replaces_policies),
            schema,
            object,
        });
    }
    if links.is_empty() {
        return Cow::Borrowed(desired);
    }
    let mut desired = desired.clone();
    desired.entities.extend(links.into_values());
    Cow::Owned(desired)
}

/// Whether the entity is a table that only links others.
pub(in crate::plan) fn is_link(name: &EntityName) -> bool {
    name.as_str().contains(':')
}

impl Relationships {
    /// `accepted`: the entities that can be served, linking tables among them; `refused`: why other linking tables cannot, and
    /// which entities are away.
    pub(super) fn new(
        desired: &Desired,
        db: &TenantDb,
        accepted: &BTreeMap<EntityName, Accepted<'_>>,
        (refused, away): (&BTreeMap<EntityName, Finding>, &Away),
    ) -> Relationships {
        let mut all = Relationships::default();
        let mut specs: Vec<&RelationshipSpec> = desired.relationships.iter().collect();
        specs.sort_by(|a, b| a.object.cmp(&b.object));
        for spec in specs {
            let judged = all.judge(spec, desired, db, (accepted, refused));
            let is_away = |entity: &String| away.keys().any(|name| name.as_str() == entity);
            if judged.is_err() && [&spec.from.entity, &spec.to.entity].into_iter().any(is_away) {
                all.wait(spec, db);
            }
            let judged =
                judged.unwrap_or_else(|finding| Judged { problems: vec![finding], ..Judged::default() });
            all.judged.insert(spec.uid.clone(), judged);
        }
        // what is served of a Relationship that cannot be read stays
        let unread = db.relationships.iter().filter(|(_, it)| desired.unread_relationships.contains(&it.uid));
        for (name, record) in unread {
            all.records.entry(name.clone()).or_insert_with(|| record.clone());
        }
        all
    }

    /// Keeps the ways that are served of one whose end is away, as far as it still declares them. No key can follow them, and their
    /// names are not free.
    fn wait(&mut self, spec: &RelationshipSpec, db: &TenantDb) {
        let is_way = |it: &RelationshipRecord| {
            let (name, entity, to) = (&it.name, it.entity.as_str(), it.to.as_str());
            let is_there = *name == spec.name && entity == spec.from.entity && to == spec.to.entity;
            let is_back =
                spec.inverse.as_ref() == Some(name) && entity == spec.to.entity && to == spec.from.entity;
            it.uid == spec.uid && (is_there || is_back)
        };
        for (name, record) in db.relationships.iter().filter(|(_, it)| is_way(it)) {
            self.waiting.insert(spec.uid.clone());
            self.records.entry(name.clone()).or_insert_with(|| record.clone());
        }
    }

    fn judge(
        &mut self,
        spec: &RelationshipSpec,
        desired: &Desired,
        db: &TenantDb,
        (accepted, refused): (&BTreeMap<EntityName, Accepted<'_>>, &BTreeMap<EntityName, Finding>),
    ) -> Result<Judged, Finding> {
        let join = join::of(spec, desired, db)?;
        let (from, to) = (entity(accepted, &spec.from.entity)?, entity(accepted, &spec.to.entity)?);
        if let Some(link) = &join.through
            && let name = EntityName::of_link(link.schema.as_str(), link.object.as_str())
            && !accepted.contains_key(&name)
        {
            let tenant = || Finding::new(Reason::SourceUnsupported, "the status of the Tenant says why");
            let Finding { reason, message } = refused.get(&name).cloned().unwrap_or_else(tenant);
            let table = format!("{}.{}", link.schema.as_str(), link.object.as_str());
            let message = format!("through names {table}, which cannot be followed: {message}");
            return Err(Finding::new(reason, message));
        }
        let is_unique = join.leads_to_one(db);
        if spec.to_one && !is_unique && !spec.assume_unique {
            let message = format!(
                "no unique index covers {}, so one row of {} may lead to several; set cardinality: Many, set assumeUnique: true to take the first row by key, or {}",
                join.to.with_entity(&spec.to.entity),
                spec.from.entity,
                join.to.unique_index(),
            );
            return Err(Finding::new(Reason::NotUnique, message));
        }
        let there = RelationshipRecord {
            uid: spec.uid.clone(),
            name: spec.name.clone(),
            entity: from.spec.name.clone(),
            to: to.spec.name.clone(),
            columns: join.from.idents(),
            to_columns: join.to.idents(),
            through: join.through.as_ref().map(|link| ThroughRecord {
                schema: link.schema.clone(),
                object: link.object.clone(),
                columns: join::idents(&link.columns),
                to_columns: join::idents(&link.to_columns),
            }),
            to_one: spec.to_one,
            takes_first: spec.to_one && !is_unique,
        };
        let back = spec.inverse.as_ref().map(|name| RelationshipRecord {
            name: name.clone(),
            entity: there.to.clone(),
            to: there.entity.clone(),
            columns: there.to_columns.clone(),
            to_columns: there.columns.clone(),
            through: there.through.as_ref().map(|link| ThroughRecord {
                columns: link.to_columns.clone(),
                to_columns: link.columns.clone(),
                ..link.clone()
            }),
            to_one: join.through.is_none() && join.from.is_unique(db),
            takes_first: false,
            uid: there.uid.clone(),
        });
        self.free(spec, from, &there.name)?;
        if let Some(back) = &back {
            self.free(spec, to, &back.name)?;
        }
        let warnings = join.slow_ways(spec, db);
        for record in [Some(there), back].into_iter().flatten() {
            self.records.insert((record.entity.to_string(), record.name.clone()), record);
        }
        Ok(Judged { problems: Vec::new(), warnings, joins: Some(join.text(spec)) })
    }

    /// Whether no field and no other relationship of the entity has this name.
    fn free(&self, spec: &RelationshipSpec, entity: &Accepted<'_>, name: &str) -> Result<(), Finding> {
        let part = if name == spec.name { "name" } else { "inverse" };
        if entity.columns().any(|column| exposed(&entity.spec.mappings, column) == name) {
            let message =
                format!("{part}: {} has a field {name} already; use another name", entity.spec.name);
            return Err(Finding::new(Reason::Taken, message));
        }
        match self.records.contains_key(&(entity.spec.name.to_string(), name.to_owned())) {
            true => {
                let message = format!(
                    "{part}: another Relationship gives {} a field {name} already; use another name",
                    entity.spec.name
                );
                Err(Finding::new(Reason::Taken, message))
            }
            false => Ok(()),
        }
    }

    /// The permissions of each role with reading a linking table's columns, where it may read both ends.
    pub(super) fn grants(
        &self,
        permissions: &BTreeMap<String, Vec<PermissionRecord>>,
    ) -> BTreeMap<String, Vec<PermissionRecord>> {
        let mut granted = permissions.clone();
        for records in granted.values_mut() {
            let reads = |entity: &EntityName, columns: &[Ident]| {
                let read =
                    |record: &&PermissionRecord| record.action == Action::Read && record.entity == *entity;
                let held: BTreeSet<&str> =
                    records.iter().filter(read).flat_map(|it| &it.columns).map(String::as_str).collect();
                columns.iter().all(|column| held.contains(column.as_str()))
            };
            let mut links: BTreeMap<EntityName, BTreeSet<String>> = BTreeMap::new();
            for record in self.records.values() {
                let Some(link) = record.through.as_ref().filter(|_| !self.waiting.contains(&record.uid))
                else {
                    continue;
                };
                if reads(&record.entity, &record.columns) && reads(&record.to, &record.to_columns) {
                    let name = EntityName::of_link(link.schema.as_str(), link.object.as_str());
                    let columns = link.columns.iter().chain(&link.to_columns);
                    links.entry(name).or_default().extend(columns.map(|it| it.as_str().to_owned()));
                }
            }
            records.extend(links.into_iter().map(|(entity, columns)| PermissionRecord {
                entity,
                action: Action::Read,
                columns: columns.into_iter().collect(),
            }));
        }
        granted
    }

    /// What `dl.relationships` needs to hold what is served.
    pub(super) fn rows(&self, desired: &Desired, db: &TenantDb) -> Vec<Statement> {
        let gone = db.relationships.keys().filter(|name| !self.records.contains_key(*name));
        let drop = |(entity, name): &(String, String)| {
            let is_way = |spec: &RelationshipSpec| {
                let back = || spec.to.entity == *entity && spec.inverse.as_ref() == Some(name);
                spec.from.entity == *entity && spec.name == *name || back()
            };
            let differs = match desired.relationships.iter().any(is_way) {
                true => format!("relationship {name} of {entity} cannot be followed as it is now"),
                false => format!("relationship {name} of {entity} was added to dl.relationships"),
            };
            Statement::from(records::drop_relationship(entity, name)).undoing([differs])
        };
        let mut statements: Vec<Statement> = gone.map(drop).collect();
        for ((entity, name), record) in &self.records {
            let there = db.relationships.get(&(entity.clone(), name.clone()));
            if there == Some(record) {
                continue;
            }
            let definition = serde_json::to_string(record).expect("a relationship is plain values");
            let differs = if there.is_some() { "has another definition in" } else { "is missing from" };
            let differs = format!("relationship {name} of {entity} {differs} dl.relationships");
            let put = Statement::from(records::put_relationship(entity, name, &definition));
            statements.push(put.undoing([differs]));
        }
        statements
    }
}

fn entity<'a, 'b>(
    accepted: &'b BTreeMap<EntityName, Accepted<'a>>,
    name: &str,
) -> Result<&'b Accepted<'a>, Finding> {
    accepted.values().find(|it| it.spec.name.as_str() == name).ok_or_else(|| {
        let message = format!("entity {name} cannot be served; the status of the Tenant says why");
        Finding::new(Reason::EntityNotFound, message)
    })
}

impl Columns<'_> {
    fn idents(&self) -> Vec<Ident> {
        join::idents(&self.names)
    }
}
