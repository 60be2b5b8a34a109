//! Tables of an application that was there before: what it and its other roles go on seeing, and how a table is given back as it was found.
//!
//! A table is ENABLEd and its owner, whom no policy holds, sees every row. PostgreSQL chooses policies by role before it plans, so the policy
//! [`OTHERS`] `TO` the other roles gives them every row and costs the queries of keys nothing.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{Acl, Cluster, Policy, QName, Relation, TenantDb};
use rowgate_sql::catalog::EntityKind;
use rowgate_sql::ddl::policies::{self, Command, Condition, PolicyDef, Rows};
use rowgate_sql::ddl::protection::Writers;
use rowgate_sql::ddl::records;
use rowgate_sql::text::{Ident, Sql};
use serde::{Deserialize, Serialize};

use super::acl::ident;
use super::{adoptable, security};
use crate::desired::{Desired, EntitySpec, Security};
use crate::plan::accept::qname;
use crate::plan::{Closed, Finding, Of, Statement, differences};
use crate::source::Event;

pub(super) mod replaced;

/// The policy by which the other roles of an application see every row.
const OTHERS: &str = "rowgate_others";
/// Their members may read, or write, every table without a right on it.
const PREDEFINED: [&str; 2] = ["pg_read_all_data", "pg_write_all_data"];
/// In `dl.applied`: a table that was adopted.
const KIND: &str = "adopted";

/// How a table was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Recorded {
    oid: u32,
    schema: String,
    name: String,
    /// Row-level security was on, and stays when the table is given back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    was_enabled: bool,
    /// Policies that were for PUBLIC, each with the roles that it is for meanwhile.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    narrowed: BTreeMap<String, BTreeSet<String>>,
}

impl Recorded {
    fn new(name: &QName, relation: &Relation) -> Recorded {
        Recorded {
            oid: relation.oid,
            schema: name.0.clone(),
            name: name.1.clone(),
            was_enabled: relation.rls_enabled,
            narrowed: BTreeMap::new(),
        }
    }
}

fn key(name: &QName, relation: &Relation) -> String {
    format!("{}.{}#{}", name.0, name.1, relation.oid)
}

/// How this table was found, if it is adopted. A dump that was restored has it under another oid.
fn recorded(db: &TenantDb, name: &QName, relation: &Relation) -> Option<Recorded> {
    if let Some(applied) = db.applied.get(&(KIND.to_owned(), key(name, relation))) {
        return serde_json::from_str(&applied.recorded).ok();
    }
    records_of(db).find(|it| (&it.schema, &it.name) == (&name.0, &name.1) && !is_there(db, it.oid))
}

fn is_there(db: &TenantDb, oid: u32) -> bool {
    db.relations.values().any(|other| other.oid == oid)
}

/// Under which name a policy is recorded in `dl.applied`.
pub(super) fn policy_record(table: &QName, policy: &str) -> String {
    format!("{}.{}.{policy}", table.0, table.1)
}

/// Of all tables that are adopted.
fn records_of(db: &TenantDb) -> impl Iterator<Item = Recorded> {
    let all = db.applied.iter().filter(|((kind, _), _)| kind == KIND);
    all.filter_map(|(_, applied)| serde_json::from_str(&applied.recorded).ok())
}

/// What the application's own policies become, and the record of the table.
pub(super) fn taken(cluster: &Cluster, db: &TenantDb, name: &QName, relation: &Relation) -> Vec<Sql> {
    let before = recorded(db, name, relation);
    let mut record = before.clone().unwrap_or_else(|| Recorded::new(name, relation));
    record.oid = relation.oid;
    let mut statements = Vec::new();
    if record.was_enabled {
        statements.extend(replaced::narrow(cluster, db, name, relation, &mut record));
    }
    if before.as_ref() != Some(&record) {
        let text = serde_json::to_string(&record).expect("names are plain values");
        statements.push(records::put_applied(KIND, &key(name, relation), "", &text));
    }
    statements
}

/// What is kept up of a table whose entity cannot be served now.
#[derive(Debug)]
pub(in crate::plan) struct KeptUp {
    /// As `schema.table`.
    pub(in crate::plan) table: String,
    pub(in crate::plan) statements: Vec<Statement>,
    /// Says which roles have come.
    pub(in crate::plan) joined: Option<Event>,
}

/// Roles of the application go on coming and going while the entity over an adopted table, one that is not in `done`, cannot be served: they see
/// what they would see if it were. What PostgreSQL refuses of it closes nothing else.
pub(in crate::plan) fn kept_up(
    desired: &Desired,
    cluster: &Cluster,
    db: &TenantDb,
    done: &BTreeSet<QName>,
) -> Vec<KeptUp> {
    let mut tables = Vec::new();
    for record in records_of(db) {
        let name = (record.schema.clone(), record.name.clone());
        let is_its = |it: &&Relation| it.oid == record.oid && it.owner == desired.owner;
        let Some(relation) = db.relations.get(&name).filter(is_its) else { continue };
        let is_kept =
            |spec: &EntitySpec| qname(spec) == name && (!record.was_enabled || spec.replaces_policies);
        if done.contains(&name) || !desired.entities.iter().any(is_kept) {
            continue;
        }
        let (statements, joined) = match record.was_enabled {
            true => (taken(cluster, db, &name, relation), replaced::joined(cluster, db, &name, relation)),
            false => (others_changed(cluster, &name, relation), joined(cluster, &name, relation)),
        };
        if !statements.is_empty() {
            let table = format!("{}.{}", name.0, name.1);
            let of = Of::Kept(table.clone());
            let statements = statements.into_iter().map(|sql| of.clone().says(sql)).collect();
            tables.push(KeptUp { table, statements, joined });
        }
    }
    tables
}

/// Those that PostgreSQL has not refused: it would refuse them again.
pub(in crate::plan) fn not_refused(kept_up: Vec<KeptUp>, closed: &Closed) -> Vec<KeptUp> {
    kept_up.into_iter().filter(|it| !closed.kept.contains(&it.table)).collect()
}

/// What gives [`OTHERS`] the roles that it is for now, where it stands.
fn others_changed(cluster: &Cluster, name: &QName, relation: &Relation) -> Vec<Sql> {
    let wanted = others(cluster, relation);
    let is_other = |there: &&Policy| !there.roles.iter().map(String::as_str).eq(wanted.iter().copied());
    if relation.policies.get(OTHERS).filter(is_other).is_none() {
        return Vec::new();
    }
    let (schema, object) = (ident(&name.0), ident(&name.1));
    let hash = security::hash(&schema, &object, &policy(cluster, relation));
    let to: Vec<&str> = wanted.into_iter().collect();
    vec![
        policies::give_to(&schema, &object, &ident(OTHERS), &to),
        records::record_policy(&policy_record(name, OTHERS), &hash, &name.0, &name.1, OTHERS),
    ]
}

/// Whether an entity can stand on something of the application; `Ok` in a database that Rowgate made.
pub(in crate::plan) fn fits(
    spec: &EntitySpec,
    desired: &Desired,
    relation: &Relation,
    db: &TenantDb,
) -> Result<(), Finding> {
    if !desired.is_adopted {
        return Ok(());
    }
    let name = qname(spec);
    let text = format!("{}.{}", name.0, name.1);
    let unsupported = |message: String| Err(Finding::new(Reason::SourceUnsupported, message));
    if spec.kind == EntityKind::View {
        return Err(adoptable::of_view(&text));
    }
    if spec.protection.is_some() && spec.writers == Writers::All {
        return unsupported(format!(
            "concurrencyProtection.writers: All would refuse the application's own writes to {text}, which name no version; set it to ApiOnly, or leave it out"
        ));
    }
    adoptable::stands_alone(&text, relation)?;
    // the entity that declares the table's security speaks for all entities over it
    let says = |it: &&EntitySpec| qname(it) == name && it.security != Security::LeftOut;
    let spec = desired.entities.iter().find(says).unwrap_or(spec);
    if let Some(record) = recorded(db, &name, relation) {
        if record.was_enabled {
            adoptable::stays_replaced(spec.replaces_policies, relation, &text)?;
            return replaced::opened(db, &name, relation).map_or(Ok(()), |policy| {
                let message = format!(
                    "policy {policy} of the application on {text} is for PUBLIC, and so for keys, until it is given to the application's roles; retrying"
                );
                Err(Finding::new(Reason::PolicyRefused, message))
            });
        }
        return added(db, &name, relation).map_or(Ok(()), |policy| {
            Err(Finding::new(
                Reason::PolicyRefused,
                format!(
                    "policy {policy} on {text} stands beside those that Rowgate made; drop it, or declare it in rowLevelSecurity"
                ),
            ))
        });
    }
    if waits(db, &name, relation) {
        return Err(Finding::new(
            Reason::PolicyRefused,
            format!("{text}, or the table that had this name before, is given back first; retrying"),
        ));
    }
    adoptable::of_others((spec.security == Security::Existing, spec.replaces_policies), relation, &text)
}

/// Whether the table was adopted under another name, or another table under this name.
fn waits(db: &TenantDb, name: &QName, relation: &Relation) -> bool {
    records_of(db).any(|it| {
        it.oid == relation.oid || (&it.schema, &it.name) == (&name.0, &name.1) && is_there(db, it.oid)
    })
}

/// Whether a plan made this policy.
fn is_ours(db: &TenantDb, name: &QName, relation: &Relation, policy: &str) -> bool {
    recorded(db, name, relation).is_some()
        && db.applied.contains_key(&("policy".to_owned(), policy_record(name, policy)))
}

/// A policy that no plan made.
fn added<'a>(db: &TenantDb, name: &QName, relation: &'a Relation) -> Option<&'a str> {
    relation.policies.keys().find(|policy| !is_ours(db, name, relation, policy)).map(String::as_str)
}

/// The roles that had rights on the table besides its owner and Rowgate's, and those that need none.
fn others<'a>(cluster: &Cluster, relation: &'a Relation) -> BTreeSet<&'a str> {
    let acls = std::iter::once(&relation.acl).chain(relation.columns.iter().map(|column| &column.acl));
    let grantees = acls.flat_map(Acl::keys).map(String::as_str);
    let others = grantees.filter(|role| *role != "public" && !cluster.roles.contains_key(*role));
    others.chain(PREDEFINED).collect()
}

/// What gives them every row.
pub(super) fn policy(cluster: &Cluster, relation: &Relation) -> PolicyDef {
    let every = Condition { roles: None, permissive: true, rows: Rows::All };
    PolicyDef {
        name: ident(OTHERS),
        permissive: true,
        command: Command::All,
        to: others(cluster, relation).into_iter().map(ident).collect(),
        using: Some(every.clone()),
        check: Some(every),
    }
}

/// Says who is given every row although the table was adopted before.
pub(super) fn joined(cluster: &Cluster, name: &QName, relation: &Relation) -> Option<Event> {
    let there = &relation.policies.get(OTHERS)?.roles;
    let new: Vec<&str> =
        others(cluster, relation).into_iter().filter(|role| !there.contains(*role)).collect();
    (!new.is_empty()).then(|| Event {
        reason: "RoleJoined".to_owned(),
        note: format!(
            "{} got rights on {}.{} and sees every row of it from now on, as the application's other roles do",
            differences::list(new.iter().copied()),
            name.0,
            name.1
        ),
        warning: false,
    })
}

/// What gives tables back that no entity names any more, each in a transaction of its own: Rowgate's policies go, those of the application are
/// for PUBLIC again, and row-level security is on or off, as it was.
pub(in crate::plan) fn given_back(desired: &Desired, db: &TenantDb) -> Vec<(QName, Vec<Statement>)> {
    let mut tables: Vec<(QName, Vec<Statement>)> = Vec::new();
    for ((_, key), applied) in db.applied.iter().filter(|((kind, _), _)| kind == KIND) {
        let Ok(recorded) = serde_json::from_str::<Recorded>(&applied.recorded) else { continue };
        let found = db.relations.iter().find(|(_, relation)| relation.oid == recorded.oid);
        let was = (recorded.schema.clone(), recorded.name.clone());
        let is_named =
            |spec: &EntitySpec| qname(spec) == was && (!recorded.was_enabled || spec.replaces_policies);
        if found.is_some_and(|(name, _)| *name == was) && desired.entities.iter().any(is_named) {
            continue;
        }
        let mut statements: Vec<Statement> = Vec::new();
        match found {
            Some((name, relation)) => {
                statements.extend(dropped(db, name, &was, relation));
                statements
                    .extend(replaced::widened(name, relation, &recorded).into_iter().map(Statement::from));
                let disable = || policies::disable(&ident(&name.0), &ident(&name.1)).into();
                statements.extend((!recorded.was_enabled).then(disable));
            }
            None => statements.extend(forgotten(db, &was)),
        }
        statements.push(records::drop_applied(KIND, key).into());
        tables.push((was, statements));
    }
    tables
}

/// What forgets the policies of a table that is gone. Another one that has its name has them, or gets them in this plan.
fn forgotten(db: &TenantDb, was: &QName) -> Vec<Statement> {
    if db.relations.contains_key(was) {
        return Vec::new();
    }
    let begin = policy_record(was, "");
    // names hold dots, too
    let longer = |(schema, name): &&QName| *schema == was.0 && name.starts_with(&format!("{}.", was.1));
    let others: Vec<String> =
        db.relations.keys().filter(longer).map(|name| policy_record(name, "")).collect();
    let is_of_it =
        |record: &str| record.starts_with(&begin) && !others.iter().any(|other| record.starts_with(other));
    let records = db.applied.keys().filter(|(kind, record)| kind == "policy" && is_of_it(record));
    records.map(|(_, record)| records::drop_applied("policy", record).into()).collect()
}

/// Its policies; they are recorded under the name that the table had.
fn dropped(db: &TenantDb, name: &QName, was: &QName, relation: &Relation) -> Vec<Statement> {
    let (schema, object): (Ident, Ident) = (ident(&name.0), ident(&name.1));
    let known: BTreeMap<&str, String> = relation
        .policies
        .keys()
        .map(|policy| (policy.as_str(), policy_record(was, policy)))
        .filter(|(_, record)| db.applied.contains_key(&("policy".to_owned(), record.clone())))
        .collect();
    let drop = |(policy, record): (&str, String)| {
        let drop = policies::drop(&schema, &object, policy).map(Statement::from);
        drop.into_iter().chain([records::drop_applied("policy", &record).into()]).collect::<Vec<_>>()
    };
    known.into_iter().flat_map(drop).collect()
}
