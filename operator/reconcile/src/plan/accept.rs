//! Which entities can be served, and why the others cannot: an entity in doubt stays closed.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{QName, Relation, RelationKind, Routine, TenantDb};
use rowgate_sql::catalog::{EXPECTED_TS, EntityKind, EntityRecord};
use rowgate_sql::text::Ident;

use super::access::{adoptable, adopted, definers, views};
use super::{Finding, capture, protection};
use crate::desired::{Desired, EntitySpec, Security};

mod refused;
mod routine;

pub(super) use refused::{Away, Refused};

/// An entity that stands on something.
#[derive(Debug, Clone)]
pub(super) struct Accepted<'a> {
    pub(super) spec: &'a EntitySpec,
    pub(super) on: On<'a>,
    pub(super) record: EntityRecord,
    /// Its `dl_expected_ts` is about to be dropped, so it counts as gone.
    pub(super) is_leaving: bool,
}

/// What an entity stands on.
#[derive(Debug, Clone, Copy)]
pub(super) enum On<'a> {
    Relation(&'a Relation),
    /// With its signature, under which [`TenantDb::routines`] has it.
    Routine(&'a str, &'a Routine),
}

impl<'a> Accepted<'a> {
    /// `None` for a routine.
    pub(super) fn relation(&self) -> Option<&'a Relation> {
        match self.on {
            On::Relation(relation) => Some(relation),
            On::Routine(..) => None,
        }
    }

    /// Whether it stands on this table or view.
    pub(super) fn is_over(&self, relation: &QName) -> bool {
        self.relation().is_some() && qname(self.spec) == *relation
    }

    /// The column behind an exposed name.
    pub(super) fn column(&self, field: &str) -> Option<&'a str> {
        self.columns().find(|column| exposed(&self.spec.mappings, column) == field)
    }

    /// Those that it goes on having.
    pub(super) fn columns(&self) -> impl Iterator<Item = &'a str> {
        let is_leaving = self.is_leaving;
        self.relation().into_iter().flat_map(move |relation| columns(relation, is_leaving))
    }
}

fn columns(relation: &Relation, is_leaving: bool) -> impl Iterator<Item = &str> {
    let names = relation.columns.iter().map(|column| column.name.as_str());
    names.filter(move |name| !is_leaving || *name != EXPECTED_TS)
}

pub(super) fn qname(spec: &EntitySpec) -> QName {
    (spec.schema.as_str().to_owned(), spec.object.as_str().to_owned())
}

/// `schema.object`
pub(super) fn source(spec: &EntitySpec) -> String {
    format!("{}.{}", spec.schema.as_str(), spec.object.as_str())
}

pub(super) fn exposed<'a>(mappings: &'a BTreeMap<String, String>, column: &'a str) -> &'a str {
    mappings.get(column).map_or(column, String::as_str)
}

/// The entities that can be served, and why the others cannot. `closed` are those that failed while being
/// applied, with the reason; `leaving` the tables whose `dl_expected_ts` is about to be dropped.
pub(super) fn accept<'a>(
    desired: &'a Desired,
    db: &'a TenantDb,
    owner: &str,
    closed: &BTreeMap<String, Finding>,
    leaving: &BTreeSet<QName>,
) -> (BTreeMap<EntityName, Accepted<'a>>, Refused) {
    let mut accepted = BTreeMap::new();
    let mut refused = Refused::default();
    if !db.shown_statements.is_empty() {
        let lines = db.shown_statements.join(" ");
        let message = format!(
            "the extension pg_stat_statements of the database shows PUBLIC, and so every key, the statements of other tenants; drop it, or let a superuser run there: {lines}"
        );
        refused.problems.push(Finding::new(Reason::ExtensionRefused, message));
        return (accepted, refused);
    }
    let unconfined = definers::unconfined(desired, db);
    for spec in &desired.entities {
        let judged = match closed.get(spec.name.as_str()) {
            Some(reason) => Err(reason.clone()),
            None if spec.kind == EntityKind::Procedure => match &unconfined {
                Some(why) => Err(Finding::new(
                    Reason::SourceUnsupported,
                    format!("no function of this database is called, because {why}"),
                )),
                None => routine::one(spec, db, owner),
            },
            None => one(spec, desired, db, leaving),
        };
        match judged {
            Ok(entity) => {
                accepted.insert(spec.name.clone(), entity);
            }
            Err(finding) => {
                let may_return = refused::may_return(spec, &finding, db);
                refused.add(spec, finding, db, may_return);
            }
        }
    }
    // the entity that declares a table's policies speaks for all over it, so they fall with it
    let undeclared: Vec<(&EntitySpec, &EntityName)> = accepted
        .values()
        .filter(|entity| entity.spec.kind == EntityKind::Table && entity.spec.security == Security::LeftOut)
        .filter_map(|entity| {
            let twin = desired
                .entities
                .iter()
                .find(|other| qname(other) == qname(entity.spec) && other.security != Security::LeftOut)?;
            (!accepted.contains_key(&twin.name)).then_some((entity.spec, &twin.name))
        })
        .collect();
    for (spec, twin) in undeclared {
        accepted.remove(&spec.name);
        let message = format!(
            "entity {twin} declares rowLevelSecurity for the same table and cannot be served; correct it first"
        );
        refused.add(spec, Finding::new(Reason::PolicyRefused, message), db, true);
    }
    // a view stands only while every table under it does, so look until nothing more falls
    loop {
        let fallen = accepted.values().find_map(|entity| {
            under(entity, &accepted, desired, db).err().map(|finding| (entity.spec, finding))
        });
        let Some((spec, finding)) = fallen else { break };
        let may_return = refused.shows_unserved(spec, &accepted, db);
        accepted.remove(&spec.name);
        refused.add(spec, finding, db, may_return);
    }
    (accepted, refused)
}

fn one<'a>(
    spec: &'a EntitySpec,
    desired: &Desired,
    db: &'a TenantDb,
    leaving: &BTreeSet<QName>,
) -> Result<Accepted<'a>, Finding> {
    let (schema, object) = (spec.schema.as_str(), spec.object.as_str());
    let relation = db.relations.get(&qname(spec)).filter(|_| schema != "dl").ok_or_else(|| {
        if db.extension_relations.contains(&qname(spec)) {
            let message = format!(
                "{schema}.{object} belongs to an extension; expose a table of your own that is filled from it"
            );
            return Finding::new(Reason::SourceUnsupported, message);
        }
        let message = format!(
            "{schema}.{object} does not exist; create it (spec.database.bootstrap) or correct source"
        );
        Finding::new(Reason::SourceNotFound, message)
    })?;
    match (spec.kind, relation.kind) {
        (EntityKind::Table, RelationKind::Table | RelationKind::PartitionedTable)
        | (EntityKind::View, RelationKind::View) => {}
        (_, RelationKind::MaterializedView) => {
            return Err(adoptable::of_materialized_view(&source(spec), "a view"));
        }
        (kind, _) => {
            return Err(Finding::new(
                Reason::SourceUnsupported,
                format!("{schema}.{object} is not a {kind:?}; correct kind or source"),
            ));
        }
    }
    let [owner, of_views] = views::owners(desired);
    if relation.owner != owner && (spec.kind == EntityKind::Table || relation.owner != of_views) {
        let beside = if desired.is_adopted { ", and the database to another role" } else { "" };
        return Err(adoptable::of_another_owner(&source(spec), relation, beside, &owner));
    }
    if spec.kind == EntityKind::Table && relation.rule.is_some() {
        return Err(adoptable::of_rule(&source(spec)));
    }
    if spec.kind == EntityKind::View && spec.security != Security::LeftOut {
        return Err(Finding::new(
            Reason::InvalidSpec,
            "rowLevelSecurity applies to tables, not to views; declare it on the tables that the view reads",
        ));
    }
    let twin = desired.entities.iter().find(|other| {
        other.name != spec.name && qname(other) == qname(spec) && other.security != Security::LeftOut
    });
    if let (Some(twin), true) = (twin, spec.security != Security::LeftOut) {
        return Err(Finding::new(
            Reason::InvalidSpec,
            format!(
                "entity {} also declares rowLevelSecurity for {schema}.{object}; declare it once",
                twin.name
            ),
        ));
    }
    let twins =
        desired.entities.iter().filter(|other| qname(other) == qname(spec) && other.kind == spec.kind);
    adopted::fits(spec, desired, relation, db)?;
    protection::agreed(spec, twins)?;
    capture::fits(spec, relation, db)?;
    let is_leaving = leaving.contains(&qname(spec));
    let mut record = record(spec, relation, is_leaving)?;
    record.shows_version = protection::shows_version(spec, relation, desired, db);
    Ok(Accepted { spec, on: On::Relation(relation), record, is_leaving })
}

fn record(spec: &EntitySpec, relation: &Relation, is_leaving: bool) -> Result<EntityRecord, Finding> {
    let columns: BTreeSet<&str> = columns(relation, is_leaving).collect();
    if let Some(missing) = spec.mappings.keys().find(|column| !columns.contains(column.as_str())) {
        return Err(Finding::new(
            Reason::FieldNotFound,
            format!("mappings names the column {missing}, which does not exist; correct mappings"),
        ));
    }
    let mut fields = BTreeSet::new();
    if let Some(twice) = columns.iter().find(|column| !fields.insert(exposed(&spec.mappings, column))) {
        return Err(Finding::new(
            Reason::InvalidSpec,
            format!("two columns are exposed as {}; change mappings", exposed(&spec.mappings, twice)),
        ));
    }
    let key = match (&spec.key_fields[..], &relation.primary_key[..]) {
        ([], []) => return Err(Finding::new(Reason::FieldNotFound, "it has no primary key; set keyFields")),
        ([], key) => key.to_vec(),
        (fields, _) => fields
            .iter()
            .map(|field| {
                let column = columns.iter().find(|column| exposed(&spec.mappings, column) == field);
                column.map(|column| (*column).to_owned()).ok_or_else(|| {
                    Finding::new(
                        Reason::FieldNotFound,
                        format!("keyFields names {field}, which is not one of its fields; correct keyFields"),
                    )
                })
            })
            .collect::<Result<_, _>>()?,
    };
    let key_columns = key.into_iter().map(Ident::new).collect::<Option<_>>();
    Ok(EntityRecord {
        name: spec.name.clone(),
        kind: spec.kind,
        schema: spec.schema.clone(),
        object: spec.object.clone(),
        key_columns: key_columns.expect("columns of PostgreSQL have names"),
        mappings: spec.mappings.clone(),
        rest: spec.rest,
        graphql: spec.graphql.clone(),
        protection: spec.protection.clone(),
        hide_soft_deleted: protection::hides_by(spec, relation)?,
        shows_version: false,
        events: spec.events,
        allow_definer: false,
    })
}

/// Whether a view calls only functions that have the rights of their caller.
fn invokers(spec: &EntitySpec, relation: &Relation, db: &TenantDb) -> Result<(), Finding> {
    if relation.kind != RelationKind::View || spec.allow_definer {
        return Ok(());
    }
    definers::called(relation, db).next().map_or(Ok(()), |signature| {
        let message = format!(
            "it calls {signature}, which is SECURITY DEFINER and so reads past every policy; alter routine {signature} security invoker, or set allowDefiner: true"
        );
        Err(Finding::new(Reason::ViewUnsafe, message))
    })
}

/// Every table that a view reads, through other views too, must be an entity, so that it has its policies; a policy TO a role would be judged
/// for the view's owner and skipped. A function with its owner's rights would read past them.
fn under(
    entity: &Accepted<'_>,
    accepted: &BTreeMap<EntityName, Accepted<'_>>,
    desired: &Desired,
    db: &TenantDb,
) -> Result<(), Finding> {
    let Some(view) = entity.relation() else { return Ok(()) };
    let owners = views::owners(desired);
    invokers(entity.spec, view, db)?;
    let mut todo: Vec<&QName> = view.reads.iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = todo.pop() {
        if !seen.insert(name) {
            continue;
        }
        let text = format!("{}.{}", name.0, name.1);
        let Some(relation) = db.relations.get(name) else {
            return Err(Finding::new(
                Reason::ViewUnsafe,
                format!("it reads {text}, which Rowgate does not manage; remove that from the view"),
            ));
        };
        match relation.kind {
            RelationKind::View if owners.contains(&relation.owner) => {
                invokers(entity.spec, relation, db)?;
                todo.extend(&relation.reads);
            }
            RelationKind::Table | RelationKind::PartitionedTable => {
                if !accepted.values().any(|other| other.is_over(name)) {
                    return Err(Finding::new(
                        Reason::ViewUnsafe,
                        format!(
                            "it reads {text}, which is not an entity, so no policy would filter it; declare it as an entity (rest.enabled may be false)"
                        ),
                    ));
                }
                if let Some(policy) = relation
                    .policies
                    .iter()
                    .find(|(_, policy)| policy.roles.iter().any(|role| role != "public"))
                {
                    let existing = accepted
                        .values()
                        .any(|other| other.is_over(name) && other.spec.security == Security::Existing);
                    if existing {
                        return Err(Finding::new(
                            Reason::ViewUnsafe,
                            format!(
                                "policy {} of {text} names a role in TO, and a view bypasses such a policy; test current_user inside the policy instead",
                                policy.0
                            ),
                        ));
                    }
                }
            }
            _ => {
                return Err(Finding::new(
                    Reason::ViewUnsafe,
                    format!("it reads {text}, which row-level security cannot filter; read a table instead"),
                ));
            }
        }
    }
    Ok(())
}
